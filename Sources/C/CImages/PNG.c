#include <png.h>
#include <setjmp.h>

#include "CImages.h"
#include "Sink.h"

/* What one reading or writing needs to know when libpng leaves it by longjmp. */
struct context {
    const uint8_t *bytes;
    size_t count, offset;
    struct sink sink;
    int status;
};

/* libpng itself refuses more than this; the rules' limits are lower. */
enum { LARGEST_SIDE = 1000000, LARGEST_CHUNK = 8 << 20 };

/* Chunks that are not used here: they are skipped, not unpacked. */
static const png_byte skipped[] =
    "tEXt\0zTXt\0iTXt\0sPLT\0eXIf\0hIST\0tIME\0pCAL\0sCAL\0oFFs\0pHYs\0sBIT\0bKGD";

static void failed(png_structp png, png_const_charp text) {
    (void)text;
    struct context *context = png_get_error_ptr(png);
    if (context->status == IMAGE_OK) context->status = IMAGE_DAMAGED;
    png_longjmp(png, 1);
}

static void warned(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static png_voidp allocate(png_structp png, png_alloc_size_t size) {
    struct context *context = png_get_mem_ptr(png);
    void *memory = malloc(size);
    if (memory == NULL) context->status = IMAGE_NO_MEMORY;
    return memory;
}

static void release(png_structp png, png_voidp memory) {
    (void)png;
    free(memory);
}

static void read_bytes(png_structp png, png_bytep to, size_t count) {
    struct context *context = png_get_io_ptr(png);
    if (count > context->count - context->offset) {
        context->status = IMAGE_TRUNCATED;
        png_error(png, "truncated");
    }
    memcpy(to, context->bytes + context->offset, count);
    context->offset += count;
}

static void write_bytes(png_structp png, png_bytep from, size_t count) {
    struct context *context = png_get_io_ptr(png);
    struct sink *sink = &context->sink;
    int status = sink_reserve(sink, count, IMAGE_TOO_MANY_BYTES, IMAGE_NO_MEMORY);
    if (status != IMAGE_OK) {
        context->status = status;
        png_error(png, "no room");
    }
    memcpy(sink->bytes + sink->count, from, count);
    sink->count += count;
}

static void flush(png_structp png) {
    (void)png;
}

static void set_limits(png_structp png) {
    png_set_user_limits(png, LARGEST_SIDE, LARGEST_SIDE);
    png_set_chunk_malloc_max(png, LARGEST_CHUNK);
    png_set_chunk_cache_max(png, 16);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_set_keep_unknown_chunks(
        png, PNG_HANDLE_CHUNK_NEVER, skipped, (int)(sizeof(skipped) / 5));
}

/* Converts every form of PNG to RGBA with eight bits. */
static void set_form(png_structp png) {
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 0xFF, PNG_FILLER_AFTER);
}

static void take_profile(png_structp png, png_infop info, struct image_pixels *pixels) {
    png_charp name;
    png_bytep profile;
    png_uint_32 length;
    int compression;
    if (png_get_iCCP(png, info, &name, &compression, &profile, &length) != PNG_INFO_iCCP) return;
    pixels->profile = profile_copy(profile, length, IMAGE_MAXIMUM_PROFILE);
    pixels->profile_length = pixels->profile == NULL ? 0 : length;
}

static int read_all(
    png_structp png, png_infop info, struct context *context, uint64_t maximum_pixels,
    struct image_pixels *pixels) {
    if (setjmp(png_jmpbuf(png)))
        return context->status == IMAGE_OK ? IMAGE_DAMAGED : context->status;
    set_limits(png);
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    /* Otherwise nearly every change ends at a checksum, and nothing behind it is read. */
    png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_option(png, PNG_IGNORE_ADLER32, PNG_OPTION_ON);
#endif
    png_set_read_fn(png, context, read_bytes);
    png_read_info(png, info);
    pixels->width = png_get_image_width(png, info);
    pixels->height = png_get_image_height(png, info);
    if ((uint64_t)pixels->width * pixels->height > maximum_pixels) return IMAGE_TOO_MANY_PIXELS;
    set_form(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    size_t row = (size_t)pixels->width * 4;
    if (png_get_rowbytes(png, info) != row) return IMAGE_UNSUPPORTED;
    pixels->rgba = image_allocate(pixels->width, pixels->height);
    if (pixels->rgba == NULL) return IMAGE_NO_MEMORY;
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < pixels->height; y++)
            png_read_row(png, pixels->rgba + y * row, NULL);
    png_read_end(png, NULL);
    take_profile(png, info, pixels);
    return IMAGE_OK;
}

int image_decode_png(
    const uint8_t *bytes, size_t count, uint64_t maximum_pixels, struct image_pixels *pixels) {
    struct context context = {.bytes = bytes, .count = count};
    *pixels = (struct image_pixels){.orientation = 1};
    png_structp png = png_create_read_struct_2(
        PNG_LIBPNG_VER_STRING, &context, failed, warned, &context, allocate, release);
    if (png == NULL) return IMAGE_NO_MEMORY;
    png_infop info = png_create_info_struct(png);
    int status = info == NULL ? IMAGE_NO_MEMORY
                              : read_all(png, info, &context, maximum_pixels, pixels);
    png_destroy_read_struct(&png, &info, NULL);
    if (status != IMAGE_OK) {
        free(pixels->rgba);
        free(pixels->profile);
        pixels->rgba = pixels->profile = NULL;
    }
    return status;
}

static int write_all(
    png_structp png, png_infop info, struct context *context, const uint8_t *rgba, uint32_t width,
    uint32_t height, bool has_alpha, const uint8_t *profile, size_t profile_length) {
    if (setjmp(png_jmpbuf(png)))
        return context->status == IMAGE_OK ? IMAGE_UNSUPPORTED : context->status;
    png_set_user_limits(png, LARGEST_SIDE, LARGEST_SIDE);
    png_set_benign_errors(png, 1);
    png_set_write_fn(png, context, write_bytes, flush);
    /* Twice as fast as the library's 6, for a few percent more bytes. */
    png_set_compression_level(png, 4);
    png_set_IHDR(
        png, info, width, height, 8, has_alpha ? PNG_COLOR_TYPE_RGB_ALPHA : PNG_COLOR_TYPE_RGB,
        PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (profile != NULL)
        png_set_iCCP(
            png, info, "ICC", PNG_COMPRESSION_TYPE_BASE, profile, (png_uint_32)profile_length);
    png_write_info(png, info);
    if (!has_alpha) png_set_filler(png, 0, PNG_FILLER_AFTER);
    for (uint32_t y = 0; y < height; y++)
        png_write_row(png, rgba + (size_t)y * width * 4);
    png_write_end(png, NULL);
    return IMAGE_OK;
}

int image_encode_png(
    const uint8_t *rgba, uint32_t width, uint32_t height, bool has_alpha, const uint8_t *profile,
    size_t profile_length, size_t maximum_bytes, struct image_bytes *written) {
    struct context context = {.sink = {.maximum = maximum_bytes}};
    *written = (struct image_bytes){0};
    png_structp png = png_create_write_struct_2(
        PNG_LIBPNG_VER_STRING, &context, failed, warned, &context, allocate, release);
    if (png == NULL) return IMAGE_NO_MEMORY;
    png_infop info = png_create_info_struct(png);
    int status = info == NULL ? IMAGE_NO_MEMORY
                              : write_all(
                                  png, info, &context, rgba, width, height, has_alpha, profile,
                                  profile_length);
    png_destroy_write_struct(&png, &info);
    if (status == IMAGE_OK)
        *written = (struct image_bytes){context.sink.bytes, context.sink.count};
    else
        free(context.sink.bytes);
    return status;
}
