#pragma once

#include "base/units.h"
#include "base/xml.h"
#include "topology/chip.h"

/* How a field of PodChip is read and written. */
typedef enum
{
  POD_FIELD_RATED,  /* PodRated: value and book */
  POD_FIELD_DOUBLE, /* double */
  POD_FIELD_COUNT,  /* unsigned */
  POD_FIELD_PS,     /* int64_t from a time */
  POD_FIELD_BOOL,
  POD_FIELD_EXTENT, /* unsigned[3] from "16x20x28" */
  POD_FIELD_WRAP,   /* PodWrapRule */
} PodFieldKind;

typedef struct
{
  const char *name; /* element of the file */
  PodFieldKind kind;
  PodUnit unit;
  size_t offset;
  bool is_required;        /* by every family */
  bool is_positive;        /* 0 is an error where the field is given */
  const char *tpu_default; /* (nullable) taken, and listed, when a TPU's file has no such element */
  const char *gpu_default; /* (nullable) the same for the other families */
  const char *summary;
} PodChipRow;

extern const PodChipRow pod_chip_rows[];
extern const size_t pod_chip_n_rows;

/* Reads "AxBxC" (1 to 3 axes, each 1 ... 2^24) into @out, missing axes 1. *out_n_axes (nullable).
 */
bool pod_extent_parse (const char *text, unsigned out[3], unsigned *out_n_axes, GError **error);
/* "16x20x28" of the first @n_axes axes. Returns: (transfer full) */
char *pod_extent_format (const unsigned extent[3], unsigned n_axes);

/* True when the element of that name is a surface, which *out_kind then names. */
bool pod_chip_surface_find (const char *element, PodChipSurface *out_kind);
/* Reads the element; one that stands twice is an error. */
bool pod_chip_surface_read (PodChip *chip, PodChipSurface kind, const PodXml *xml, PodXmlNode *node,
                            GError **error);
