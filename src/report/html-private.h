#pragma once

#include "report/html-page.h"

/* What makes up a page. */

/* page.css and page.js of this folder, put into the library by the Makefile. */
extern const char pod_asset_page_css[];
extern const char pod_asset_page_js[];

/* (transfer none) where the next element goes */
GString *pod_html_body (PodReportHtml *page);
/* Escapes text for between tags or quotes. */
void pod_html_append_text (GString *out, const char *text);
void pod_html_append_element (GString *out, const char *open, const char *text, const char *close);
