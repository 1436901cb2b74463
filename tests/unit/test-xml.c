#include "base/xml.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>
#include <glib/gstdio.h>

#include "base/error.h"

static char *folder;

static const char schema_text[]
    = "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">\n"
      "  <xs:element name=\"topology\">\n"
      "    <xs:complexType>\n"
      "      <xs:sequence>\n"
      "        <xs:element name=\"link\" maxOccurs=\"unbounded\">\n"
      "          <xs:complexType>\n"
      "            <xs:attribute name=\"rate\" type=\"xs:string\" use=\"required\"/>\n"
      "            <xs:attribute name=\"ports\" type=\"xs:string\"/>\n"
      "            <xs:attribute name=\"wrap\" type=\"xs:string\"/>\n"
      "          </xs:complexType>\n"
      "        </xs:element>\n"
      "      </xs:sequence>\n"
      "    </xs:complexType>\n"
      "  </xs:element>\n"
      "</xs:schema>\n";

static char *
path_of (const char *name)
{
  return g_build_filename (folder, name, NULL);
}

/* Returns: (transfer full) the path */
static char *
write_file (const char *name, const char *text)
{
  char *path = path_of (name);

  ck_assert (g_file_set_contents (path, text, -1, NULL));
  return path;
}

static void
make_folder (void)
{
  folder = g_dir_make_tmp ("podsim-xml-XXXXXX", NULL);
  ck_assert_ptr_nonnull (folder);
  g_free (write_file ("schema.xsd", schema_text));
}

static void
remove_folder (void)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);

  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir))
    {
      g_autofree char *path = path_of (name);
      g_remove (path);
    }
  g_rmdir (folder);
  g_clear_pointer (&folder, g_free);
}

static const char good_text[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                "<!-- no <!DOCTYPE here -->\n"
                                "<topology>\n"
                                "  <link rate=\"450 GB/s\" ports=\"4\" wrap=\"true\"/>\n"
                                "  <!-- between -->\n"
                                "  <link\n"
                                "    rate=\"450\" ports=\"1.5\" wrap=\"yes\"/>\n"
                                "  <link rate=\"1 B/s\"/>\n"
                                "</topology>\n";

START_TEST (document_is_walked)
{
  g_autofree char *file = write_file ("t.xml", good_text);
  g_autofree char *schema = path_of ("schema.xsd");
  g_autoptr (GError) error = NULL;
  g_autoptr (PodXml) xml = pod_xml_load (file, schema, &error);

  ck_assert_msg (xml != NULL, "%s", xml == NULL ? error->message : "");
  ck_assert_str_eq (xml->file, file);
  PodXmlNode *root = pod_xml_root (xml);
  ck_assert_str_eq (root->name, "topology");
  PodXmlNode *link = pod_xml_child (root, NULL);
  ck_assert_ptr_eq (link, pod_xml_child (root, "link"));
  ck_assert_ptr_null (pod_xml_child (root, "chip"));
  ck_assert_ptr_null (pod_xml_child (link, NULL));
  PodXmlNode *second = pod_xml_next (link, "link");
  ck_assert_ptr_eq (second, pod_xml_next (link, NULL));
  ck_assert_ptr_null (pod_xml_next (pod_xml_next (second, NULL), NULL));

  g_autofree char *rate = pod_xml_attr (link, "rate");
  ck_assert_str_eq (rate, "450 GB/s");
  ck_assert_ptr_null (pod_xml_attr (link, "absent"));
}
END_TEST

START_TEST (attributes_are_got)
{
  g_autofree char *file = write_file ("t.xml", good_text);
  g_autoptr (PodXml) xml = pod_xml_load (file, NULL, NULL);
  PodXmlNode *link = pod_xml_child (pod_xml_root (xml), "link");
  PodXmlNode *bare = pod_xml_next (pod_xml_next (link, NULL), NULL);
  double rate = 0;
  uint64_t n_ports = 0;
  bool is_wrapped = false;

  ck_assert (pod_xml_get_quantity (xml, link, "rate", POD_UNIT_BYTES_PER_S, true, &rate, NULL));
  ck_assert (rate == 4.5e11);
  ck_assert (pod_xml_get_whole (xml, link, "ports", POD_UNIT_COUNT, true, &n_ports, NULL));
  ck_assert_uint_eq (n_ports, 4);
  ck_assert (pod_xml_get_bool (xml, link, "wrap", &is_wrapped, NULL));
  ck_assert (is_wrapped);
  /* Absent and not required: left alone */
  ck_assert (pod_xml_get_quantity (xml, bare, "loss", POD_UNIT_RATIO, false, &rate, NULL));
  ck_assert (pod_xml_get_whole (xml, bare, "ports", POD_UNIT_COUNT, false, &n_ports, NULL));
  ck_assert (pod_xml_get_bool (xml, bare, "wrap", &is_wrapped, NULL));
  ck_assert (rate == 4.5e11 && n_ports == 4 && is_wrapped);
}
END_TEST

/* Returns: (transfer full) @error's message without the folder */
static char *
message_of (const GError *error)
{
  ck_assert_ptr_nonnull (error);
  ck_assert (g_str_has_prefix (error->message, folder));
  return g_strdup (error->message + strlen (folder) + 1);
}

/* The line of an element is, in libxml2, the one on which its start tag ends. */
START_TEST (bad_attributes_are_refused)
{
  static const char *const messages[] = {
    "t.xml:7: <link> rate: \"450\": has no unit, expected a bandwidth such as \"450 GB/s\" or "
    "\"400 Gb/s\" (bits)",
    "t.xml:7: <link> ports: \"1.5\": is not whole, expected a count such as \"4096\", \"32Ki\" or "
    "\"2.5e12\"",
    "t.xml:7: <link> wrap: expected true or false, got \"yes\"",
    "t.xml:7: <link> lacks the attribute latency",
    "t.xml:7: <link> lacks the attribute lanes",
    "t.xml:3: 7 links, at most 6",
  };
  g_autofree char *file = write_file ("t.xml", good_text);
  g_autoptr (PodXml) xml = pod_xml_load (file, NULL, NULL);
  PodXmlNode *root = pod_xml_root (xml);
  PodXmlNode *link = pod_xml_next (pod_xml_child (root, "link"), "link");
  GError *errors[G_N_ELEMENTS (messages)] = { NULL };
  double value = 0;
  uint64_t whole = 0;
  bool is_true = false;

  ck_assert (
      !pod_xml_get_quantity (xml, link, "rate", POD_UNIT_BYTES_PER_S, true, &value, &errors[0]));
  ck_assert (!pod_xml_get_whole (xml, link, "ports", POD_UNIT_COUNT, true, &whole, &errors[1]));
  ck_assert (!pod_xml_get_bool (xml, link, "wrap", &is_true, &errors[2]));
  ck_assert (
      !pod_xml_get_quantity (xml, link, "latency", POD_UNIT_SECONDS, true, &value, &errors[3]));
  ck_assert (!pod_xml_get_whole (xml, link, "lanes", POD_UNIT_COUNT, true, &whole, &errors[4]));
  ck_assert (!pod_xml_error (xml, root, &errors[5], "%d links, at most %d", 7, 6));
  for (size_t i = 0; i < G_N_ELEMENTS (messages); i++)
    {
      g_autofree char *message = message_of (errors[i]);
      ck_assert_str_eq (message, messages[i]);
      ck_assert (g_error_matches (errors[i], POD_ERROR, POD_ERROR_INVALID));
      g_clear_error (&errors[i]);
    }
}
END_TEST

static const struct
{
  const char *text;
  const char *message;
} bad_texts[] = {
  { "", "t.xml:1: Document is empty" },
  { "<topology>\n<link rate='1'>\n</topology>",
    "t.xml:3: Opening and ending tag mismatch: link line 2 and topology" },
  { "<topology>\n  <link rate=450/>\n</topology>", "t.xml:2: AttValue: \" or ' expected" },
  { "<topology/>\n<topology/>", "t.xml:2: Extra content at the end of the document" },
  { "<topology>\n<link/>\n</topology>",
    "t.xml:2: Element 'link': The attribute 'rate' is required but missing" },
  { "<topology>\n\n<link rate='1' colour='red'/>\n</topology>",
    "t.xml:3: Element 'link', attribute 'colour': The attribute 'colour' is not allowed" },
  { "<topology>\n<chip/>\n</topology>",
    "t.xml:2: Element 'chip': This element is not expected. Expected is ( link )" },
  { "<!DOCTYPE topology>\n<topology/>", "t.xml:1: a DOCTYPE is not allowed" },
  { "<?xml version='1.0'?>\n<!-- a\n -->\n<!DOCTYPE t [<!ENTITY a 'b'>]>\n<topology>&a;</topology>",
    "t.xml:4: a DOCTYPE is not allowed" },
  { "<topology>\n<link rate='&lol;'/></topology>", "t.xml:2: Entity 'lol' not defined" },
  { "<topology>\n\xff</topology>", "t.xml:2: byte 0xff is not UTF-8 text" },
};

START_TEST (bad_document_is_refused)
{
  g_autofree char *file = write_file ("t.xml", bad_texts[_i].text);
  g_autofree char *schema = path_of ("schema.xsd");
  g_autoptr (GError) error = NULL;

  ck_assert_ptr_null (pod_xml_load (file, schema, &error));
  ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_PARSE));
  g_autofree char *message = message_of (error);
  ck_assert_str_eq (message, bad_texts[_i].message);
}
END_TEST

/* "+ADw-" is '<' in UTF-7: with the declared encoding believed, this would be a DOCTYPE. */
START_TEST (declared_encoding_hides_no_doctype)
{
  g_autofree char *file = write_file ("t.xml", "<?xml version='1.0' encoding='UTF-7'?>\n"
                                               "+ADw-!DOCTYPE t+AD4-<topology/>");
  g_autoptr (GError) error = NULL;

  ck_assert_ptr_null (pod_xml_load (file, NULL, &error));
  g_autofree char *message = message_of (error);
  ck_assert (g_str_has_prefix (message, "t.xml:2: "));
}
END_TEST

START_TEST (doctype_in_text_is_no_doctype)
{
  g_autofree char *file
      = write_file ("t.xml", "<?pi <!DOCTYPE ?><t><![CDATA[<!DOCTYPE x>]]></t><!--<!DOCTYPE-->");
  g_autoptr (PodXml) xml = pod_xml_load (file, NULL, NULL);

  ck_assert_ptr_nonnull (xml);
}
END_TEST

START_TEST (lines_past_65535_are_right)
{
  g_autofree char *blank_lines = g_strnfill (99999, '\n');
  g_autofree char *text = g_strconcat ("<topology>", blank_lines, "<link/></topology>", NULL);
  g_autofree char *file = write_file ("t.xml", text);
  g_autofree char *schema = path_of ("schema.xsd");
  g_autoptr (GError) error = NULL;

  ck_assert_ptr_null (pod_xml_load (file, schema, &error));
  g_autofree char *message = message_of (error);
  ck_assert_str_eq (message,
                    "t.xml:100000: Element 'link': The attribute 'rate' is required but missing");
}
END_TEST

START_TEST (what_is_no_file_is_refused)
{
  static const char *const messages[] = {
    "missing.xml: cannot open: No such file or directory",
    "fifo: is not a regular file",
    "huge.xml: too big: 209715200 bytes, at most 67108864 are read",
  };
  static const char *const names[] = { "missing.xml", "fifo", "huge.xml" };
  g_autofree char *fifo = path_of ("fifo");
  g_autofree char *huge = write_file ("huge.xml", "<t>");

  ck_assert_int_eq (mkfifo (fifo, 0600), 0);
  ck_assert_int_eq (truncate (huge, (off_t) 200 << 20), 0); /* sparse: costs no disk */
  for (size_t i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *file = path_of (names[i]);
      g_autoptr (GError) error = NULL;
      ck_assert_ptr_null (pod_xml_load (file, NULL, &error));
      ck_assert (g_error_matches (error, POD_ERROR, POD_ERROR_PARSE));
      g_autofree char *message = message_of (error);
      ck_assert_str_eq (message, messages[i]);
    }
}
END_TEST

START_TEST (bad_schema_is_refused)
{
  g_autofree char *file = write_file ("t.xml", good_text);
  g_autofree char *schema = write_file ("bad.xsd", "<xs:schema xmlns:xs=\"http://www.w3.org/2001/"
                                                   "XMLSchema\">\n<xs:element/>\n</xs:schema>");
  g_autofree char *missing = path_of ("missing.xsd");
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) missing_error = NULL;

  ck_assert_ptr_null (pod_xml_load (file, schema, &error));
  g_autofree char *message = message_of (error);
  ck_assert (g_str_has_prefix (message, "bad.xsd:2: Element "));
  ck_assert_ptr_null (pod_xml_load (file, missing, &missing_error));
  g_autofree char *missing_message = message_of (missing_error);
  ck_assert_str_eq (missing_message, "missing.xsd: cannot open: No such file or directory");
}
END_TEST

static Suite *
make_suite (void)
{
  Suite *suite = suite_create ("xml");
  TCase *tcase = tcase_create ("xml");

  tcase_add_checked_fixture (tcase, make_folder, remove_folder);
  tcase_set_timeout (tcase, 60);
  tcase_add_test (tcase, document_is_walked);
  tcase_add_test (tcase, attributes_are_got);
  tcase_add_test (tcase, bad_attributes_are_refused);
  tcase_add_loop_test (tcase, bad_document_is_refused, 0, G_N_ELEMENTS (bad_texts));
  tcase_add_test (tcase, declared_encoding_hides_no_doctype);
  tcase_add_test (tcase, doctype_in_text_is_no_doctype);
  tcase_add_test (tcase, lines_past_65535_are_right);
  tcase_add_test (tcase, what_is_no_file_is_refused);
  tcase_add_test (tcase, bad_schema_is_refused);
  suite_add_tcase (suite, tcase);
  return suite;
}

int
main (void)
{
  SRunner *runner = srunner_create (make_suite ());

  srunner_run_all (runner, CK_NORMAL);
  int n_failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
