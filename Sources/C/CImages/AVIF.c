#include <avif/avif.h>
#include <dlfcn.h>

#include "CImages.h"
#include "Sink.h"

#if AVIF_VERSION_MAJOR >= 1
#define AVIF_LIBRARY "libavif.so.16"
#else
#define AVIF_LIBRARY "libavif.so.15"
#endif

/* The functions used here; they are looked up when the library is loaded. */
#define EACH_FUNCTION(USE) \
    USE(avifDecoderCreate) USE(avifDecoderDestroy) USE(avifDecoderSetIOMemory) \
    USE(avifDecoderParse) USE(avifDecoderNextImage) USE(avifRGBImageSetDefaults) \
    USE(avifImageYUVToRGB) USE(avifCodecName)

#define DECLARE(NAME) __typeof__(&NAME) NAME;
static struct { EACH_FUNCTION(DECLARE) } avif;
static bool is_loaded;

/* The maximum number of frames of a sequence for which the library may build tables. */
enum { MOST_FRAMES = 100000 };

bool image_load_avif(void) {
    if (is_loaded) return true;
    void *library = dlopen(AVIF_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return false;
#define FIND(NAME) \
    avif.NAME = (__typeof__(avif.NAME))dlsym(library, #NAME); \
    if (avif.NAME == NULL) return false;
    EACH_FUNCTION(FIND)
    is_loaded = true;
    return true;
}

static int status_of(avifResult result) {
    switch (result) {
    case AVIF_RESULT_OK:
        return IMAGE_OK;
    case AVIF_RESULT_OUT_OF_MEMORY:
        return IMAGE_NO_MEMORY;
    case AVIF_RESULT_TRUNCATED_DATA:
        return IMAGE_TRUNCATED;
    case AVIF_RESULT_UNSUPPORTED_DEPTH:
    case AVIF_RESULT_NO_CODEC_AVAILABLE:
    case AVIF_RESULT_NOT_IMPLEMENTED:
        return IMAGE_UNSUPPORTED;
    default:
        return IMAGE_DAMAGED;
    }
}

/* A single-threaded decoder, dav1d if it is available, with the library's own limits. */
static avifDecoder *make_decoder(uint64_t maximum_pixels) {
    avifDecoder *decoder = avif.avifDecoderCreate();
    if (decoder == NULL) return NULL;
    decoder->codecChoice = AVIF_CODEC_CHOICE_AUTO;
    if (avif.avifCodecName(AVIF_CODEC_CHOICE_DAV1D, AVIF_CODEC_FLAG_CAN_DECODE) != NULL)
        decoder->codecChoice = AVIF_CODEC_CHOICE_DAV1D;
    decoder->maxThreads = 1;
    decoder->ignoreExif = AVIF_TRUE;
    decoder->ignoreXMP = AVIF_TRUE;
    decoder->imageCountLimit = MOST_FRAMES;
    if (maximum_pixels > 0 && maximum_pixels < AVIF_DEFAULT_IMAGE_SIZE_LIMIT)
        decoder->imageSizeLimit = (uint32_t)maximum_pixels;
    return decoder;
}

static int parse(avifDecoder *decoder, const uint8_t *bytes, size_t count) {
    avifResult result = avif.avifDecoderSetIOMemory(decoder, bytes, count);
    if (result == AVIF_RESULT_OK) result = avif.avifDecoderParse(decoder);
    return status_of(result);
}

int image_inspect_avif(
    const uint8_t *bytes, size_t count, uint32_t *width, uint32_t *height, uint32_t *frames,
    uint32_t *depth) {
    if (!is_loaded) return IMAGE_UNSUPPORTED;
    avifDecoder *decoder = make_decoder(0);
    if (decoder == NULL) return IMAGE_NO_MEMORY;
    int status = parse(decoder, bytes, count);
    if (status == IMAGE_OK) {
        *width = decoder->image->width;
        *height = decoder->image->height;
        *frames = decoder->imageCount < 1 ? 1 : (uint32_t)decoder->imageCount;
        *depth = decoder->image->depth;
    }
    avif.avifDecoderDestroy(decoder);
    return status;
}

/* An image's rotation and mirroring, in this order, as one of EXIF's numbers. */
static uint32_t orientation_of(const avifImage *image) {
    static const uint8_t plain[4] = {1, 8, 3, 6};
    static const uint8_t top_to_bottom[4] = {4, 5, 2, 7};
    static const uint8_t left_to_right[4] = {2, 7, 4, 5};
    unsigned turns = (image->transformFlags & AVIF_TRANSFORM_IROT) ? image->irot.angle & 3 : 0;
    if (!(image->transformFlags & AVIF_TRANSFORM_IMIR)) return plain[turns];
#if AVIF_VERSION_MAJOR >= 1
    return image->imir.axis ? left_to_right[turns] : top_to_bottom[turns];
#else
    return image->imir.mode ? left_to_right[turns] : top_to_bottom[turns];
#endif
}

static int convert(const avifImage *image, uint64_t maximum_pixels, struct image_pixels *pixels) {
    pixels->width = image->width;
    pixels->height = image->height;
    if ((uint64_t)pixels->width * pixels->height > maximum_pixels) return IMAGE_TOO_MANY_PIXELS;
    pixels->orientation = orientation_of(image);
    pixels->rgba = image_allocate(pixels->width, pixels->height);
    if (pixels->rgba == NULL) return IMAGE_NO_MEMORY;
    avifRGBImage rgb;
    avif.avifRGBImageSetDefaults(&rgb, image);
    rgb.depth = 8;
    rgb.format = AVIF_RGB_FORMAT_RGBA;
    rgb.pixels = pixels->rgba;
    rgb.rowBytes = pixels->width * 4;
    int status = status_of(avif.avifImageYUVToRGB(image, &rgb));
    if (status != IMAGE_OK) return status;
    pixels->profile = profile_copy(image->icc.data, image->icc.size, IMAGE_MAXIMUM_PROFILE);
    pixels->profile_length = pixels->profile == NULL ? 0 : image->icc.size;
    return IMAGE_OK;
}

int image_decode_avif(
    const uint8_t *bytes, size_t count, uint64_t maximum_pixels, struct image_pixels *pixels) {
    *pixels = (struct image_pixels){.orientation = 1};
    if (!is_loaded) return IMAGE_UNSUPPORTED;
    avifDecoder *decoder = make_decoder(maximum_pixels);
    if (decoder == NULL) return IMAGE_NO_MEMORY;
    int status = parse(decoder, bytes, count);
    if (status == IMAGE_OK) status = status_of(avif.avifDecoderNextImage(decoder));
    if (status == IMAGE_OK) status = convert(decoder->image, maximum_pixels, pixels);
    avif.avifDecoderDestroy(decoder);
    if (status != IMAGE_OK) {
        free(pixels->rgba);
        free(pixels->profile);
        pixels->rgba = pixels->profile = NULL;
    }
    return status;
}
