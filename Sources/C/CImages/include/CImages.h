#ifndef PINFOLD_CIMAGES_H
#define PINFOLD_CIMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The system's image libraries, which leave their functions by longjmp, in a form that Swift can
 * call; and the confinement of the process that calls them. */

enum {
    IMAGE_OK = 0,
    /* The content contradicts the format. */
    IMAGE_DAMAGED,
    /* It ends too early. */
    IMAGE_TRUNCATED,
    /* A variant of the format that is not supported here. */
    IMAGE_UNSUPPORTED,
    /* More than `maximum_pixels`; `width` and `height` are set. */
    IMAGE_TOO_MANY_PIXELS,
    /* The output exceeds `maximum_bytes`. */
    IMAGE_TOO_MANY_BYTES,
    IMAGE_NO_MEMORY,
};

/* Pixels: four bytes each, red, green, blue and alpha (not premultiplied), rows without padding. */
struct image_pixels {
    uint32_t width, height;
    /* As in EXIF, 1...8: what must be done to the pixels so that the first is at the top left.
     * Only for AVIF, whose properties express it. */
    uint32_t orientation;
    uint8_t *_Nullable rgba;
    /* The ICC profile of the image; NULL for none, or one larger than IMAGE_MAXIMUM_PROFILE. */
    uint8_t *_Nullable profile;
    size_t profile_length;
};

/* The maximum size in bytes of an ICC profile that is kept. */
enum { IMAGE_MAXIMUM_PROFILE = 1 << 20 };

/* Bytes written; allocated with malloc. */
struct image_bytes {
    uint8_t *_Nullable bytes;
    size_t count;
};

/* Each decodes the first frame, and leaves nothing to free unless it returns IMAGE_OK. */
int image_decode_png(const uint8_t *_Nonnull bytes, size_t count, uint64_t maximum_pixels,
                     struct image_pixels *_Nonnull pixels);
int image_decode_jpeg(const uint8_t *_Nonnull bytes, size_t count, uint64_t maximum_pixels,
                      struct image_pixels *_Nonnull pixels);
int image_decode_webp(const uint8_t *_Nonnull bytes, size_t count, uint64_t maximum_pixels,
                      struct image_pixels *_Nonnull pixels);
int image_decode_avif(const uint8_t *_Nonnull bytes, size_t count, uint64_t maximum_pixels,
                      struct image_pixels *_Nonnull pixels);
/* Reads the header of an AVIF file; decodes nothing. `depth` is in bits per sample. */
int image_inspect_avif(const uint8_t *_Nonnull bytes, size_t count, uint32_t *_Nonnull width,
                       uint32_t *_Nonnull height, uint32_t *_Nonnull frames,
                       uint32_t *_Nonnull depth);
/* Loads the AVIF library, which brings some thirty others, and is therefore loaded only in the
 * decoding process. Returns false if there is none, and AVIF is IMAGE_UNSUPPORTED. */
bool image_load_avif(void);

/* Memory for this many pixels, all transparent; NULL if there is none. */
uint8_t *_Nullable image_allocate(uint32_t width, uint32_t height);
void image_free(void *_Nullable memory);

/* RGBA with `has_alpha`, otherwise RGB. The profile must be an RGB profile. */
int image_encode_png(const uint8_t *_Nonnull rgba, uint32_t width, uint32_t height, bool has_alpha,
                     const uint8_t *_Nullable profile, size_t profile_length,
                     size_t maximum_bytes, struct image_bytes *_Nonnull written);
/* Transparency becomes white; chroma at half resolution (4:2:0). `quality` is 1...100. */
int image_encode_jpeg(const uint8_t *_Nonnull rgba, uint32_t width, uint32_t height, int quality,
                      const uint8_t *_Nullable profile, size_t profile_length,
                      size_t maximum_bytes, struct image_bytes *_Nonnull written);

/* The result of confining a process, as bits. */
enum {
    /* All but a few system calls end the process. */
    IMAGE_CONFINED_CALLS = 1,
    /* Its memory is limited. */
    IMAGE_CONFINED_MEMORY = 2,
};

/* For a process with one thread that has a socket as descriptors 0 and 1: closes every descriptor
 * from 3 on, and permanently gives up what decoding does not need. `memory` is the number of bytes
 * beyond its current memory, `seconds` the total processor time. Returns bits as above, or -1 if
 * one of the limits could not be set. */
int image_confine(uint64_t memory, uint32_t seconds);
/* Ends the process by SIGALRM after this many seconds; 0 cancels that. */
void image_set_alarm(uint32_t seconds);

#endif
