#ifndef PINFOLD_CIMAGES_H
#define PINFOLD_CIMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The system's image libraries, which leave their functions by longjmp, in a form that Swift can
 * call; and what the process does to itself that calls them. */

enum {
    IMAGE_OK = 0,
    /* The content contradicts the format. */
    IMAGE_DAMAGED,
    /* It ends too early. */
    IMAGE_TRUNCATED,
    /* A form of the format that is not decoded here. */
    IMAGE_UNSUPPORTED,
    /* More than `maximum_pixels`; `width` and `height` are set. */
    IMAGE_TOO_MANY_PIXELS,
    /* What is written has more than `maximum_bytes`. */
    IMAGE_TOO_MANY_BYTES,
    IMAGE_NO_MEMORY,
};

/* Pixels: four bytes each, red, green, blue and alpha (not multiplied), rows without padding. */
struct image_pixels {
    uint32_t width, height;
    /* As in EXIF, 1...8: what must be done to the pixels so that the first is at the top left.
     * Only of AVIF, whose own properties these are. */
    uint32_t orientation;
    uint8_t *_Nullable rgba;
    /* The ICC profile of what was read; NULL: none, or one beyond IMAGE_MAXIMUM_PROFILE. */
    uint8_t *_Nullable profile;
    size_t profile_length;
};

/* Bytes of an ICC profile that are kept at most. */
enum { IMAGE_MAXIMUM_PROFILE = 1 << 20 };

/* Bytes that were written; from malloc. */
struct image_bytes {
    uint8_t *_Nullable bytes;
    size_t count;
};

/* Each decodes the first frame, and leaves nothing to free where it does not return IMAGE_OK. */
int image_decode_png(const uint8_t *_Nonnull bytes, size_t count, uint64_t maximum_pixels,
                     struct image_pixels *_Nonnull pixels);
int image_decode_jpeg(const uint8_t *_Nonnull bytes, size_t count, uint64_t maximum_pixels,
                      struct image_pixels *_Nonnull pixels);
int image_decode_webp(const uint8_t *_Nonnull bytes, size_t count, uint64_t maximum_pixels,
                      struct image_pixels *_Nonnull pixels);
int image_decode_avif(const uint8_t *_Nonnull bytes, size_t count, uint64_t maximum_pixels,
                      struct image_pixels *_Nonnull pixels);
/* What the head of an AVIF file says; decodes nothing. `depth` is bits of a sample. */
int image_inspect_avif(const uint8_t *_Nonnull bytes, size_t count, uint32_t *_Nonnull width,
                       uint32_t *_Nonnull height, uint32_t *_Nonnull frames,
                       uint32_t *_Nonnull depth);
/* Loads the AVIF library, which takes some thirty others with it: so only in the process that
 * decodes. False: there is none, and AVIF is IMAGE_UNSUPPORTED. */
bool image_load_avif(void);

/* Memory for so many pixels, all transparent; NULL: there is none. */
uint8_t *_Nullable image_allocate(uint32_t width, uint32_t height);
void image_free(void *_Nullable memory);

/* With `has_alpha` RGBA, else RGB. A profile must be one of RGB. */
int image_encode_png(const uint8_t *_Nonnull rgba, uint32_t width, uint32_t height, bool has_alpha,
                     const uint8_t *_Nullable profile, size_t profile_length,
                     size_t maximum_bytes, struct image_bytes *_Nonnull written);
/* Transparency becomes white; colours at half the resolution (4:2:0). `quality` is 1...100. */
int image_encode_jpeg(const uint8_t *_Nonnull rgba, uint32_t width, uint32_t height, int quality,
                      const uint8_t *_Nullable profile, size_t profile_length,
                      size_t maximum_bytes, struct image_bytes *_Nonnull written);

/* What has become of a process that confined itself: bits. */
enum {
    /* System calls but a few end the process. */
    IMAGE_CONFINED_CALLS = 1,
    /* Its memory is bounded. */
    IMAGE_CONFINED_MEMORY = 2,
};

/* For a process of one thread that has a socket as 0 and 1: closes every descriptor from 3 on, and
 * takes from itself for good what decoding does not need. `memory` is in bytes beyond what it has
 * now, `seconds` of processor time in all. Returns bits as above, or -1 where one of the limits
 * could not be set. */
int image_confine(uint64_t memory, uint32_t seconds);
/* Ends the process by SIGALRM after so many seconds; 0: takes that back. */
void image_set_alarm(uint32_t seconds);

#endif
