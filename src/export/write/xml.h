// SPDX-License-Identifier: MIT
#pragma once

#include <stddef.h>
#include <stdio.h>

// Write text for XML content and attributes: markup escaped; what XML 1.0 cannot hold (control characters, U+FFFE,
// U+FFFF) and bytes that are not UTF-8 replaced by U+FFFD. Source: XML 1.0, production [2] Char.
void gp_xml_text(FILE *out, const char *text);

// The same, cut to `columns` characters' width with an ellipsis at the end where it is longer; wide
// characters count twice.
void gp_xml_text_cut(FILE *out, const char *text, size_t columns);
