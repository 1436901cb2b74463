#include "report/html-page.h"

#include <string.h>

#include "base/output.h"
#include "report/html-private.h"

struct PodReportHtml
{
  GString *body;
  GString *links; /* to the sections */
  char *title;
  char *subtitle; /* (nullable) */
  bool is_in_section;
};

PodReportHtml *
pod_report_html_new (const char *title, const char *subtitle)
{
  g_return_val_if_fail (title != NULL, NULL);

  PodReportHtml *page = g_new0 (PodReportHtml, 1);

  page->body = g_string_new (NULL);
  page->links = g_string_new (NULL);
  page->title = g_strdup (title);
  page->subtitle = g_strdup (subtitle);
  return page;
}

void
pod_report_html_free (PodReportHtml *page)
{
  if (page == NULL)
    return;
  g_string_free (page->body, TRUE);
  g_string_free (page->links, TRUE);
  g_free (page->title);
  g_free (page->subtitle);
  g_free (page);
}

/* Text between tags or quotes. Bytes that are no UTF-8, and control characters, which HTML has no
 * way to write, become U+FFFD and blanks. */
void
pod_html_append_text (GString *out, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_autofree char *escaped = NULL;

  for (char *c = valid; *c != '\0'; c++)
    if (g_ascii_iscntrl (*c))
      *c = ' ';
  escaped = g_markup_escape_text (valid, -1);
  g_string_append (out, escaped);
}

void
pod_html_append_element (GString *out, const char *open, const char *text, const char *close)
{
  g_string_append (out, open);
  pod_html_append_text (out, text);
  g_string_append (out, close);
}

GString *
pod_html_body (PodReportHtml *page)
{
  return page->body;
}

static void
end_section (PodReportHtml *page)
{
  if (page->is_in_section)
    g_string_append (page->body, "</section>\n");
  page->is_in_section = false;
}

void
pod_report_html_section (PodReportHtml *page, const char *id, const char *heading, const char *note)
{
  g_return_if_fail (page != NULL && id != NULL && heading != NULL);

  end_section (page);
  page->is_in_section = true;
  g_string_append_printf (page->body, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">", id, id);
  pod_html_append_element (page->body, "", heading, "</h2>\n");
  g_string_append_printf (page->links, "<li><a href=\"#%s\">", id);
  pod_html_append_element (page->links, "", heading, "</a></li>\n");
  if (note != NULL)
    pod_html_append_element (page->body, "<p class=\"note\">", note, "</p>\n");
}

void
pod_report_html_paragraph (PodReportHtml *page, const char *text)
{
  g_return_if_fail (page != NULL && text != NULL);

  pod_html_append_element (page->body, "<p>", text, "</p>\n");
}

void
pod_report_html_items (PodReportHtml *page, const char *const *items, unsigned n_items)
{
  g_return_if_fail (page != NULL);

  g_string_append (page->body, "<ul>\n");
  for (unsigned i = 0; i < n_items; i++)
    pod_html_append_element (page->body, "<li>", items[i], "</li>\n");
  g_string_append (page->body, "</ul>\n");
}

void
pod_report_html_facts (PodReportHtml *page, const PodTable *table)
{
  g_return_if_fail (page != NULL && table != NULL && pod_table_n_columns (table) >= 2);

  const bool has_notes = pod_table_n_columns (table) > 2;

  g_string_append (page->body, "<dl class=\"facts\">\n");
  for (int row = 0; row < (int) pod_table_n_rows (table); row++)
    {
      const char *note = has_notes ? pod_table_cell (table, row, 2) : "";

      pod_html_append_element (page->body, "<div><dt>", pod_table_cell (table, row, 0), "</dt>");
      pod_html_append_element (page->body, "<dd>", pod_table_cell (table, row, 1), "</dd>");
      if (*note != '\0')
        pod_html_append_element (page->body, "<dd class=\"note\">", note, "</dd>");
      g_string_append (page->body, "</div>\n");
    }
  g_string_append (page->body, "</dl>\n");
}

enum
{
  LONG_CELL = 48, /* bytes: a sentence, which is given room to be read in few lines */
};

static bool
has_titles (const PodTable *table)
{
  for (unsigned i = 0; i < pod_table_n_columns (table); i++)
    if (*pod_table_cell (table, -1, i) != '\0')
      return true;
  return false;
}

/* A list of names and values, without titles, is as wide as the page lets it be. */
static const char *
class_of (const PodTable *table, int row, unsigned i)
{
  const bool is_long = row >= 0 && strlen (pod_table_cell (table, row, i)) > LONG_CELL;

  if (pod_table_is_right (table, i))
    return " class=\"right\"";
  return is_long && has_titles (table) ? " class=\"words\"" : "";
}

static void
append_row (GString *out, const PodTable *table, int row)
{
  g_string_append (out, "<tr>");
  for (unsigned i = 0; i < pod_table_n_columns (table); i++)
    {
      const char *cell = pod_table_cell (table, row, i);
      /* A row's first cell names it; a column without a title has no heading */
      const bool is_heading = row < 0 ? *cell != '\0' : i == 0;

      g_string_append_printf (out, "<%s%s>",
                              !is_heading ? "td"
                              : row < 0   ? "th scope=\"col\""
                                          : "th scope=\"row\"",
                              class_of (table, row, i));
      pod_html_append_text (out, cell);
      g_string_append (out, is_heading ? "</th>" : "</td>");
    }
  g_string_append (out, "</tr>\n");
}

void
pod_report_html_table (PodReportHtml *page, const char *caption, const PodTable *table)
{
  g_return_if_fail (page != NULL && caption != NULL && table != NULL);

  GString *out = page->body;

  /* Focus, so that keys scroll what does not fit */
  pod_html_append_element (
      out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", caption, "\">\n");
  pod_html_append_element (out, "<table><caption>", caption, "</caption>\n");
  if (has_titles (table))
    {
      g_string_append (out, "<thead>");
      append_row (out, table, -1);
      g_string_append (out, "</thead>\n");
    }
  g_string_append (out, "<tbody>\n");
  for (int row = 0; row < (int) pod_table_n_rows (table); row++)
    append_row (out, table, row);
  g_string_append (out, "</tbody></table></div>\n");
}

void
pod_report_html_svg (PodReportHtml *page, const char *caption, const char *svg)
{
  g_return_if_fail (page != NULL && caption != NULL && svg != NULL);

  pod_html_append_element (page->body, "<figure><figcaption>", caption, "</figcaption>\n");
  pod_html_append_element (page->body,
                           "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
                           caption, "\">\n");
  g_string_append_printf (page->body, "%s</div></figure>\n", svg);
}

void
pod_report_html_data (PodReportHtml *page, const char *id, const char *json)
{
  g_return_if_fail (page != NULL && id != NULL && json != NULL);

  g_string_append_printf (page->body, "<script type=\"application/json\" id=\"%s\">", id);
  /* Outside of strings JSON has no <, and a string may have it as an escape */
  for (const char *at = json; *at != '\0';)
    {
      const size_t n = strcspn (at, "<");

      g_string_append_len (page->body, at, (gssize) n);
      at += n;
      if (*at == '<')
        {
          g_string_append (page->body, "\\u003c");
          at++;
        }
    }
  g_string_append (page->body, "</script>\n");
}

/* Nothing may be fetched: the page itself says so, and the browser holds it to that. */
static const char head[]
    = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n";

bool
pod_report_html_save (PodReportHtml *page, const char *file, GError **error)
{
  g_return_val_if_fail (page != NULL && file != NULL, false);
  g_return_val_if_fail (error == NULL || *error == NULL, false);

  g_autoptr (GString) out = g_string_new (head);

  end_section (page);
  pod_html_append_element (out, "<title>", page->title, "</title>\n");
  g_string_append_printf (out, "<style>\n%s</style>\n</head>\n<body>\n", pod_asset_page_css);
  g_string_append (out, "<a class=\"skip\" href=\"#content\">to the content</a>\n");
  pod_html_append_element (out, "<header>\n<h1>", page->title, "</h1>\n");
  if (page->subtitle != NULL)
    pod_html_append_element (out, "<p>", page->subtitle, "</p>\n");
  g_string_append_printf (out, "<nav aria-label=\"sections\"><ul>\n%s</ul></nav>\n</header>\n",
                          page->links->str);
  g_string_append_printf (out, "<main id=\"content\">\n%s</main>\n", page->body->str);
  g_string_append (out, "<footer><p>podsim " POD_VERSION "</p></footer>\n");
  g_string_append_printf (out, "<script>\n%s</script>\n</body>\n</html>\n", pod_asset_page_js);
  return pod_output_save (file, out->str, error);
}
