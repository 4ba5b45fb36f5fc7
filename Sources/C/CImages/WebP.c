#include <webp/decode.h>
#include <webp/demux.h>

#include "CImages.h"
#include "Sink.h"

static int status_of(VP8StatusCode code) {
    switch (code) {
    case VP8_STATUS_OK:
        return IMAGE_OK;
    case VP8_STATUS_OUT_OF_MEMORY:
        return IMAGE_NO_MEMORY;
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return IMAGE_TRUNCATED;
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return IMAGE_UNSUPPORTED;
    default:
        return IMAGE_DAMAGED;
    }
}

/* Decodes a frame into its position on the canvas, the rest of which is transparent. */
static int decode_frame(const WebPIterator *frame, struct image_pixels *pixels) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) return IMAGE_UNSUPPORTED;
    int status = status_of(
        WebPGetFeatures(frame->fragment.bytes, frame->fragment.size, &config.input));
    if (status != IMAGE_OK) return status;
    int64_t width = config.input.width, height = config.input.height;
    if (config.input.has_animation || width < 1 || height < 1 || frame->x_offset < 0
        || frame->y_offset < 0 || frame->x_offset + width > pixels->width
        || frame->y_offset + height > pixels->height)
        return IMAGE_DAMAGED;
    size_t row = (size_t)pixels->width * 4;
    size_t offset = (size_t)frame->y_offset * row + (size_t)frame->x_offset * 4;
    config.options.use_threads = 0;
    config.output.colorspace = MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = pixels->rgba + offset;
    config.output.u.RGBA.stride = (int)row;
    config.output.u.RGBA.size = row * pixels->height - offset;
    return status_of(WebPDecode(frame->fragment.bytes, frame->fragment.size, &config));
}

static void take_profile(const WebPDemuxer *demuxer, struct image_pixels *pixels) {
    WebPChunkIterator chunk;
    if (!WebPDemuxGetChunk(demuxer, "ICCP", 1, &chunk)) return;
    pixels->profile =
        profile_copy(chunk.chunk.bytes, chunk.chunk.size, IMAGE_MAXIMUM_PROFILE);
    pixels->profile_length = pixels->profile == NULL ? 0 : chunk.chunk.size;
    WebPDemuxReleaseChunkIterator(&chunk);
}

static int decode_first(
    const WebPDemuxer *demuxer, uint64_t maximum_pixels, struct image_pixels *pixels) {
    pixels->width = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH);
    pixels->height = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT);
    if ((uint64_t)pixels->width * pixels->height > maximum_pixels) return IMAGE_TOO_MANY_PIXELS;
    WebPIterator frame;
    if (!WebPDemuxGetFrame(demuxer, 1, &frame)) return IMAGE_DAMAGED;
    int status = IMAGE_NO_MEMORY;
    pixels->rgba = image_allocate(pixels->width, pixels->height);
    if (pixels->rgba != NULL) status = decode_frame(&frame, pixels);
    WebPDemuxReleaseIterator(&frame);
    if (status == IMAGE_OK) take_profile(demuxer, pixels);
    return status;
}

int image_decode_webp(
    const uint8_t *bytes, size_t count, uint64_t maximum_pixels, struct image_pixels *pixels) {
    *pixels = (struct image_pixels){.orientation = 1};
    WebPData data = {bytes, count};
    WebPDemuxState state;
    WebPDemuxer *demuxer = WebPDemuxPartial(&data, &state);
    int status;
    if (state == WEBP_DEMUX_DONE && demuxer != NULL)
        status = decode_first(demuxer, maximum_pixels, pixels);
    else
        status = state == WEBP_DEMUX_PARSE_ERROR ? IMAGE_DAMAGED : IMAGE_TRUNCATED;
    WebPDemuxDelete(demuxer);
    if (status != IMAGE_OK) {
        free(pixels->rgba);
        free(pixels->profile);
        pixels->rgba = pixels->profile = NULL;
    }
    return status;
}
