#ifndef PINFOLD_CLIVEPAGE_H
#define PINFOLD_CLIVEPAGE_H

#include <stddef.h>

/// A file of the live page.
struct live_page_file {
    /// Its name in the folder `page`.
    const char *_Nonnull name;
    const unsigned char *_Nonnull bytes;
    size_t count;
};

/// The files of the live page, from 0; NULL beyond the last one.
const struct live_page_file *_Nullable live_page_file(size_t index);

#endif
