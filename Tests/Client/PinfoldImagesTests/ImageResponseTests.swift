import Foundation
import HTTPTypes
import ImageCodecs
import TestSupport
import Testing

@testable import PinfoldClient
@testable import PinfoldImages

/// Returns a single pixel, or an error.
private struct OwnDecoder: ImageDecoding {
    var failure: ImageError?

    func decode(
        _ content: [UInt8], _ format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> ImagePixels {
        if let failure { throw failure }
        return ImagePixels(width: 1, height: 1, rgba: [1, 2, 3, 4])
    }
}

@Suite("Image responses")
struct ImageResponseTests {
    private func response(_ status: Int, _ type: String?) -> HTTPResponse {
        HTTPResponse(
            status: .init(code: status), headerFields: type.map { [.contentType: $0] } ?? [:])
    }

    /// 24 × 16 pixels in four quarters, the first of which is red.
    private func sample(_ name: String) throws -> [UInt8] {
        try Checkout.bytes("Tests/Platform/ImageCodecsTests/Images/\(name)")
    }

    private func red(_ width: Int, _ height: Int) throws -> Raster {
        let raster = try Raster(width: width, height: height)
        for index in raster.pixels.indices {
            raster.pixels[index] = index % 4 == 0 || index % 4 == 3 ? 255 : 0
        }
        return raster
    }

    private func png(_ width: Int, _ height: Int) throws -> [UInt8] {
        try ImageCodecs.encodePNG(try red(width, height), maximumBytes: 1 << 26)
    }

    private static let gif: [UInt8] =
        Array("GIF89a".utf8) + [
            1, 0, 1, 0, 0x80, 0, 0, 255, 0, 0, 0, 0, 0, 0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44,
            1, 0, 0x3B,
        ]

    private func samples() throws -> [(format: ImageFormat, content: [UInt8])] {
        [
            (.png, try png(24, 16)),
            (.jpeg, try ImageCodecs.encodeJPEG(try red(24, 16), maximumBytes: 1 << 20)),
            (.gif, Self.gif), (.webp, try sample("lossy.webp")), (.avif, try sample("opaque.avif")),
        ]
    }

    private func error(
        _ serializer: ImageResponseSerializer, _ content: [UInt8]
    ) -> ResponseSerializationError.Reason? {
        let result = serializer.serialize(response(200, "image/png"), content: content)
        #expect(result.value == nil)
        return result.error?.reason
    }

    @Test func `image types are accepted, and others an error without a value`()
        throws
    {
        let content = try png(2, 3)
        for type in [
            "image/tiff", "image/jpeg", "image/gif", "image/png", "image/ico", "image/x-icon",
            "image/bmp", "image/x-bmp", "image/x-xbitmap", "image/x-win-bitmap", "image/webp",
            "image/avif", "Image/PNG; a=b",
        ] {
            let result = ImageResponseSerializer()
                .serialize(response(200, type), content: content)
            #expect(result.value?.format == .png)
            #expect(result.error == nil)
        }
        for type in ["text/html", "image/svg+xml", "application/octet-stream", nil] {
            let result = ImageResponseSerializer()
                .serialize(response(200, type), content: content)
            #expect(result.value == nil)
            #expect(
                result.error?.reason
                    == .contentType(type, accepted: ImageResponseSerializer.contentTypes))
        }
    }

    @Test func `an image has the requested scale`() throws {
        let result = ImageResponseSerializer(scale: 2)
            .serialize(response(200, "image/png"), content: try png(30, 20))
        let image = try #require(result.value)
        #expect(image.scale == 2)
        #expect(image.width == 30 && image.height == 20)
        #expect(image.size == (15, 10))
    }

    @Test func `an image is decoded unless it is larger than 1024² pixels or deeper than 8 bits`()
        throws
    {
        let serializer = ImageResponseSerializer()
        for (content, isDecoded) in [
            (try png(1024, 1024), true), (try png(1024, 1025), false),
            (try sample("turned-10bit.avif"), false),
        ] {
            let image = serializer.serialize(response(200, "image/png"), content: content).value
            #expect((image?.pixels != nil) == isDecoded)
            #expect(image?.content == content)
        }
        let deep = serializer.serialize(nil, content: try sample("turned-10bit.avif")).value
        #expect(deep?.bitsPerSample == 10)
    }

    @Test func `if an image is not to be decoded, only its header is read`() throws {
        let serializer = ImageResponseSerializer(
            inflates: false, decoder: OwnDecoder(failure: .decoder("it was asked")))
        for (format, content) in try samples() {
            let result = serializer.serialize(nil, content: content)
            #expect(result.error == nil)
            #expect(result.value?.format == format)
            #expect(result.value?.width == (format == .gif ? 1 : 24))
            #expect(result.value?.height == (format == .gif ? 1 : 16))
            #expect(result.value?.pixels == nil)
            #expect(result.value?.content == content)
        }
        let animated = serializer.serialize(nil, content: try sample("animated.webp")).value
        #expect((animated?.frames ?? 0) > 1)
    }

    @Test func `supported formats are decoded, whatever the content type is`() throws {
        for (format, content) in try samples() {
            let result = ImageResponseSerializer()
                .serialize(response(200, "image/x-icon"), content: content)
            guard format != .avif || ImageCodecs.load() else {
                #expect(result.error?.reason == .image(.notDecoded(.avif)))
                continue
            }
            let image = try #require(result.value)
            let pixels = try #require(image.pixels)
            #expect(image.format == format)
            #expect(pixels.width == image.width && pixels.height == image.height)
            #expect(pixels.rgba.count == 4 * image.width * image.height)
            #expect(pixels.rgba[0] > 240 && pixels.rgba[1] < 16 && pixels.rgba[2] < 16)
            #expect(pixels.rgba[3] == 255)
        }
    }

    @Test(
        arguments: [
            ([0x49, 0x49, 0x2A, 0, 8, 0, 0, 0], "TIFF"),
            ([0x4D, 0x4D, 0, 0x2A, 0, 0, 0, 8], "TIFF"),
            (Array("BM".utf8) + [UInt8](repeating: 0, count: 30), "BMP"),
            ([0, 0, 1, 0, 1, 0], "ICO"),
            (Array("#define a_width 8\n".utf8), "X bitmap"),
        ] as [([UInt8], String)])
    func `accepted formats that are not supported are rejected by name`(
        content: [UInt8], name: String
    ) {
        let reason = error(ImageResponseSerializer(), content)
        #expect(reason == .image(.formatNotRead(name)))
        let text = ResponseSerializationError(
            .image(.formatNotRead(name)), response: nil, content: []
        ).description
        #expect(text.hasPrefix("\(name) images are not supported"))
    }

    @Test func `no content is no value, and other content is not an image`() {
        let empty = ImageResponseSerializer().serialize(response(200, "image/png"), content: [])
        #expect(empty.value == nil && empty.error == nil)
        for content in ["<html>", "BM", "{}", "\u{0}"] {
            #expect(error(ImageResponseSerializer(), Array(content.utf8)) == .image(.notAnImage))
        }
    }

    @Test func `a truncated image is an error, at any byte`() throws {
        let serializer = ImageResponseSerializer()
        for (format, content) in try samples() where format != .avif || ImageCodecs.load() {
            for count in 1..<content.count - 16 {
                let result = serializer.serialize(nil, content: Array(content[..<count]))
                #expect(result.value?.pixels == nil || format == .gif, "\(format) of \(count)")
                #expect((result.value == nil) == (result.error != nil))
            }
        }
    }

    @Test func `a damaged image is either read or an error`() throws {
        let serializer = ImageResponseSerializer()
        for (format, content) in try samples() where format != .avif || ImageCodecs.load() {
            for place in stride(from: 0, to: content.count, by: max(1, content.count / 200)) {
                var damaged = content
                damaged[place] ^= 0xFF
                let result = serializer.serialize(nil, content: damaged)
                #expect((result.value == nil) == (result.error != nil))
            }
        }
    }

    @Test func `limits hold before anything is decoded`() throws {
        let content = try png(24, 16)
        let decoder = OwnDecoder(failure: .decoder("it was asked"))
        var serializer = ImageResponseSerializer(decoder: decoder)
        serializer.limits.bytes = content.count - 1
        #expect(error(serializer, content) == .image(.tooManyBytes(limit: content.count - 1)))
        serializer.limits = ImageLimits(pixels: 24 * 16 - 1)
        #expect(
            error(serializer, content)
                == .image(.tooManyPixels(width: 24, height: 16, limit: 24 * 16 - 1)))
        serializer.limits = ImageLimits(frames: 1)
        let animated = error(serializer, try sample("animated.webp"))
        guard case .image(.tooManyFrames(let frames, limit: 1)) = animated else {
            Issue.record("the frames are not counted: \(String(describing: animated))")
            return
        }
        #expect(frames > 1)
        serializer.limits = ImageLimits(bytes: content.count, pixels: 24 * 16, frames: 1)
        #expect(error(serializer, content) == .image(.decoder("it was asked")))
    }

    @Test func `a custom decoder makes the pixels, and may fail`() throws {
        let content = try png(24, 16)
        let made = ImageResponseSerializer(decoder: OwnDecoder())
            .serialize(response(200, "image/png"), content: content)
        #expect(made.value?.pixels?.rgba == [1, 2, 3, 4])
        #expect(made.value?.width == 1 && made.value?.height == 1)
        let failed = ImageResponseSerializer(decoder: OwnDecoder(failure: .memory))
        #expect(error(failed, content) == .image(.memory))
    }

    @Test func `image errors carry the response, and underlying errors`() throws {
        let content = Array(try png(24, 16).prefix(40))
        let answer = response(404, "image/png")
        let error = ImageResponseSerializer().serialize(answer, content: content).error
        #expect(error?.chain.map(\.reason) == [.image(.truncated(.png)), .status(404)])
        #expect(error?.response == answer)
        #expect(error?.content == content)
        let whole = ImageResponseSerializer().serialize(answer, content: try png(24, 16))
        #expect(whole.value?.pixels != nil)
        #expect(whole.error?.reason == .status(404))
    }

    @Test func `a compound serializer takes images, too`() throws {
        let serializer = CompoundResponseSerializer([
            JSONResponseSerializer(), ImageResponseSerializer(),
        ])
        let image = serializer.serialize(response(200, "image/png"), content: try png(2, 2))
        #expect((image.value as? DecodedImage)?.pixels?.rgba.count == 16)
        let damaged = serializer.serialize(response(200, "image/png"), content: [1])
        #expect((damaged.value as? [UInt8]) == [1])
    }
}
