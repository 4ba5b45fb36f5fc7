#include <setjmp.h>
#include <stdio.h>
/* In this order: libjpeg's header needs stdio's types. */
#include <jpeglib.h>
#include <jerror.h>

#include "CImages.h"
#include "Sink.h"

/* The maximum number of scans of a progressive image: each costs a pass over all of it, and takes
 * few bytes. */
enum { MOST_SCANS = 100 };

struct errors {
    struct jpeg_error_mgr manager;
    jmp_buf exit;
    int status;
    bool is_truncated, is_damaged;
};

static int status_of(int code) {
    switch (code) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
        return IMAGE_NO_MEMORY;
    case JERR_INPUT_EOF:
    case JERR_INPUT_EMPTY:
        return IMAGE_TRUNCATED;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_NOT_COMPILED:
        return IMAGE_UNSUPPORTED;
    default:
        return IMAGE_DAMAGED;
    }
}

static void failed(j_common_ptr common) {
    struct errors *errors = (struct errors *)common->err;
    if (errors->status == IMAGE_OK)
        errors->status = errors->is_truncated ? IMAGE_TRUNCATED
                                              : status_of(errors->manager.msg_code);
    longjmp(errors->exit, 1);
}

/* Handles warnings, which leave grey areas where data is missing. Those about what surrounds the
 * picture are no errors. */
static void warned(j_common_ptr common, int level) {
    struct errors *errors = (struct errors *)common->err;
    if (level >= 0) return;
    switch (errors->manager.msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
        break;
    case JWRN_JPEG_EOF:
        errors->is_truncated = true;
        break;
    default:
        errors->is_damaged = true;
    }
}

static void say_nothing(j_common_ptr common) {
    (void)common;
}

static struct jpeg_error_mgr *set_errors(struct errors *errors) {
    *errors = (struct errors){0};
    jpeg_std_error(&errors->manager);
    errors->manager.error_exit = failed;
    errors->manager.emit_message = warned;
    errors->manager.output_message = say_nothing;
    return &errors->manager;
}

/* Called repeatedly while it reads. */
static void watch(j_common_ptr common) {
    j_decompress_ptr decompress = (j_decompress_ptr)common;
    if (decompress->input_scan_number > MOST_SCANS) ERREXIT(common, JERR_BAD_PROGRESSION);
}

/* Adobe's CMYK is stored inverted, and so is all CMYK that decoders encounter with its marker. */
static void convert_cmyk(uint8_t *row, uint32_t width, bool is_inverted) {
    uint8_t flip = is_inverted ? 0 : 255;
    for (uint32_t x = 0; x < width; x++, row += 4) {
        unsigned black = row[3] ^ flip;
        for (int i = 0; i < 3; i++)
            row[i] = (uint8_t)(((row[i] ^ flip) * black + 127) / 255);
        row[3] = 255;
    }
}

static void take_profile(j_decompress_ptr jpeg, struct image_pixels *pixels) {
    JOCTET *profile = NULL;
    unsigned length = 0;
    if (!jpeg_read_icc_profile(jpeg, &profile, &length)) return;
    if (length > IMAGE_MAXIMUM_PROFILE) {
        free(profile);
        return;
    }
    pixels->profile = profile;
    pixels->profile_length = length;
}

static int read_rows(
    j_decompress_ptr jpeg, struct errors *errors, uint64_t maximum_pixels,
    struct image_pixels *pixels) {
    jpeg_read_header(jpeg, TRUE);
    pixels->width = jpeg->image_width;
    pixels->height = jpeg->image_height;
    if ((uint64_t)pixels->width * pixels->height > maximum_pixels) return IMAGE_TOO_MANY_PIXELS;
    bool is_cmyk = jpeg->num_components == 4;
    if (jpeg->num_components != 1 && jpeg->num_components != 3 && !is_cmyk)
        return IMAGE_UNSUPPORTED;
    jpeg->out_color_space = is_cmyk ? JCS_CMYK : JCS_EXT_RGBA;
    pixels->rgba = image_allocate(pixels->width, pixels->height);
    if (pixels->rgba == NULL) return IMAGE_NO_MEMORY;
    if (!is_cmyk) take_profile(jpeg, pixels);
    jpeg_start_decompress(jpeg);
    if (jpeg->output_width != pixels->width || jpeg->output_height != pixels->height
        || jpeg->output_components != 4)
        return IMAGE_UNSUPPORTED;
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = pixels->rgba + (size_t)jpeg->output_scanline * pixels->width * 4;
        if (jpeg_read_scanlines(jpeg, &row, 1) != 1) return IMAGE_TRUNCATED;
        if (is_cmyk) convert_cmyk(row, pixels->width, jpeg->saw_Adobe_marker);
    }
    jpeg_finish_decompress(jpeg);
    if (errors->is_truncated) return IMAGE_TRUNCATED;
    return errors->is_damaged ? IMAGE_DAMAGED : IMAGE_OK;
}

static int read_all(
    j_decompress_ptr jpeg, struct errors *errors, struct jpeg_progress_mgr *progress, const uint8_t *bytes, size_t count,
    uint64_t maximum_pixels, struct image_pixels *pixels) {
    if (setjmp(errors->exit)) return errors->status;
    jpeg_create_decompress(jpeg);
    jpeg->progress = progress;
    jpeg_mem_src(jpeg, bytes, count);
    jpeg_save_markers(jpeg, JPEG_APP0 + 2, 0xFFFF);
    return read_rows(jpeg, errors, maximum_pixels, pixels);
}

int image_decode_jpeg(
    const uint8_t *bytes, size_t count, uint64_t maximum_pixels, struct image_pixels *pixels) {
    *pixels = (struct image_pixels){.orientation = 1};
    struct errors errors;
    struct jpeg_progress_mgr progress = {.progress_monitor = watch};
    struct jpeg_decompress_struct jpeg = {.err = set_errors(&errors)};
    int status = count == 0
        ? IMAGE_TRUNCATED
        : read_all(&jpeg, &errors, &progress, bytes, count, maximum_pixels, pixels);
    jpeg_destroy_decompress(&jpeg);
    if (status != IMAGE_OK) {
        free(pixels->rgba);
        free(pixels->profile);
        pixels->rgba = pixels->profile = NULL;
    }
    return status;
}

/* A growing destination. */
struct destination {
    struct jpeg_destination_mgr manager;
    struct sink sink;
};

static void make_room(j_compress_ptr jpeg, size_t more) {
    struct destination *to = (struct destination *)jpeg->dest;
    int status = sink_reserve(&to->sink, more, IMAGE_TOO_MANY_BYTES, IMAGE_NO_MEMORY);
    if (status != IMAGE_OK) {
        ((struct errors *)jpeg->err)->status = status;
        ERREXIT(jpeg, JERR_CANT_SUSPEND);
    }
    to->manager.next_output_byte = to->sink.bytes + to->sink.count;
    to->manager.free_in_buffer = to->sink.capacity - to->sink.count;
}

static void begin(j_compress_ptr jpeg) {
    make_room(jpeg, 1);
}

static boolean go_on(j_compress_ptr jpeg) {
    struct destination *to = (struct destination *)jpeg->dest;
    to->sink.count = to->sink.capacity;
    make_room(jpeg, 1);
    return TRUE;
}

static void finish(j_compress_ptr jpeg) {
    struct destination *to = (struct destination *)jpeg->dest;
    to->sink.count = to->sink.capacity - to->manager.free_in_buffer;
}

static void blend_over_white(const uint8_t *rgba, uint8_t *rgb, uint32_t width) {
    for (uint32_t x = 0; x < width; x++, rgba += 4, rgb += 3) {
        unsigned alpha = rgba[3];
        for (int i = 0; i < 3; i++)
            rgb[i] = (uint8_t)((rgba[i] * alpha + 255 * (255 - alpha) + 127) / 255);
    }
}

static int write_all(
    j_compress_ptr jpeg, struct errors *errors, struct destination *to, uint8_t *row,
    const uint8_t *rgba, uint32_t width, uint32_t height, int quality, const uint8_t *profile,
    size_t profile_length) {
    if (setjmp(errors->exit)) return errors->status;
    jpeg_create_compress(jpeg);
    to->manager.init_destination = begin;
    to->manager.empty_output_buffer = go_on;
    to->manager.term_destination = finish;
    jpeg->dest = &to->manager;
    jpeg->image_width = width;
    jpeg->image_height = height;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_RGB;
    /* Chroma at half resolution is the default. */
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, quality, TRUE);
    jpeg_start_compress(jpeg, TRUE);
    if (profile != NULL) jpeg_write_icc_profile(jpeg, profile, (unsigned)profile_length);
    while (jpeg->next_scanline < height) {
        blend_over_white(rgba + (size_t)jpeg->next_scanline * width * 4, row, width);
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
    return IMAGE_OK;
}

int image_encode_jpeg(
    const uint8_t *rgba, uint32_t width, uint32_t height, int quality, const uint8_t *profile,
    size_t profile_length, size_t maximum_bytes, struct image_bytes *written) {
    *written = (struct image_bytes){0};
    if (width > JPEG_MAX_DIMENSION || height > JPEG_MAX_DIMENSION) return IMAGE_UNSUPPORTED;
    uint8_t *row = malloc((size_t)width * 3);
    if (row == NULL) return IMAGE_NO_MEMORY;
    struct errors errors;
    struct destination to = {.sink = {.maximum = maximum_bytes}};
    struct jpeg_compress_struct jpeg = {.err = set_errors(&errors)};
    int status = write_all(
        &jpeg, &errors, &to, row, rgba, width, height, quality, profile, profile_length);
    jpeg_destroy_compress(&jpeg);
    free(row);
    if (status == IMAGE_OK)
        *written = (struct image_bytes){to.sink.bytes, to.sink.count};
    else
        free(to.sink.bytes);
    return status;
}
