import ImageCodecs
import TestSupport
import Testing

@Suite("A plan for images")
struct PlanTests {
    private func failure(_ plan: ImagePlan, _ bytes: [UInt8]) -> ImageCodecError? {
        do {
            _ = try plan.apply(to: bytes)
            return nil
        } catch {
            return error
        }
    }

    private func size(_ bytes: [UInt8]) throws -> [Int] {
        let header = try ImageCodecs.inspect(bytes)
        return [header.width, header.height]
    }

    @Test func `leaves an image unchanged if nothing is to be done`() throws {
        #expect(isAVIFLoaded)
        for name in ["lossy.webp", "animated.webp", "alpha.avif", "cmyk.jpg"] {
            #expect(try ImagePlan().apply(to: SampleFile.read(name)) == nil)
        }
        #expect(try ImagePlan().apply(to: SampleImage.png()) == nil)
        #expect(try ImagePlan().apply(to: SampleImage.gif()) == nil)
    }

    @Test(
        arguments: [
            "lossy.webp", "lossless-alpha.webp", "lossy-alpha.webp", "animated.webp",
            "opaque.avif", "alpha.avif", "progressive.jpg", "cmyk.jpg", "png", "gif",
        ])
    func `refuses an image that ends too early, after each of its bytes`(name: String) throws {
        #expect(isAVIFLoaded)
        let bytes =
            switch name {
            case "png": SampleImage.png()
            case "gif": SampleImage.gif()
            default: try SampleFile.read(name)
            }
        #expect(failure(ImagePlan(), bytes) == nil)
        let kind = try ImageCodecs.inspect(bytes).kind
        for count in 0..<bytes.count {
            let found = failure(ImagePlan(), Array(bytes.prefix(count)))
            // Between two parts of the file it appears as a missing part.
            #expect(
                [.notAnImage, .truncated(kind), .damaged(kind)].contains(found), "\(count) bytes")
        }
    }

    @Test func `refuses types that are neither accepted nor converted`() throws {
        var plan = ImagePlan()
        plan.accepted = [.png, .jpeg]
        #expect(failure(plan, SampleImage.gif()) == .notAccepted(.gif))
        #expect(failure(plan, SampleImage.png()) == nil)
        plan.conversions = [.gif: .png]
        #expect(try plan.apply(to: SampleImage.gif())?.kind == .png)
        #expect(failure(plan, Array("<html>".utf8)) == .notAnImage)
    }

    @Test(
        arguments: [
            ("lossy.webp", ImageKind.png), ("lossless-alpha.webp", .jpeg), ("animated.webp", .png),
            ("opaque.avif", .jpeg), ("animated.avif", .jpeg), ("cmyk.jpg", .png),
            ("progressive.jpg", .jpeg),
        ])
    func `converts one type to another`(name: String, kind: ImageKind) throws {
        #expect(isAVIFLoaded)
        let bytes = try SampleFile.read(name)
        var plan = ImagePlan()
        plan.conversions = [try ImageCodecs.inspect(bytes).kind: kind]
        let made = try #require(try plan.apply(to: bytes))
        #expect(made.kind == kind)
        let header = try ImageCodecs.inspect(made.bytes)
        #expect(header.kind == kind && header.frames == 1)
        #expect(header.width == SampleImage.width && header.height == SampleImage.height)
    }

    @Test func `holds the head to its limits before anything is decoded`() throws {
        let bomb = SampleImage.bomb(width: 30_000, height: 30_000)
        #expect(bomb.count < 8192)
        #expect(
            failure(ImagePlan(), bomb)
                == .tooManyPixels(width: 30_000, height: 30_000, limit: 1 << 24))
        let largest = SampleImage.bomb(width: 0x7FFF_FFFF, height: 0x7FFF_FFFF)
        #expect(
            failure(ImagePlan(), largest)
                == .tooManyPixels(width: 0x7FFF_FFFF, height: 0x7FFF_FFFF, limit: 1 << 24))
        // The data, which ends too early, is not reached.
        var plan = ImagePlan()
        plan.maximumPixels = 383
        let png = SampleImage.png()
        #expect(failure(plan, png) == .tooManyPixels(width: 24, height: 16, limit: 383))
        plan.maximumPixels = 384
        #expect(failure(plan, png) == nil)
        plan.maximumBytes = png.count
        #expect(failure(plan, png) == nil)
        plan.maximumBytes -= 1
        #expect(failure(plan, png) == .tooManyBytes(limit: png.count - 1))
        plan = ImagePlan()
        plan.maximumFrames = 1
        let animation = try SampleFile.read("animated.webp")
        #expect(failure(plan, animation) == .tooManyFrames(2, limit: 1))
        plan.conversions = [.png: .jpeg]
        plan.maximumResultBytes = 100
        #expect(failure(plan, png) == .resultTooLarge(limit: 100))
    }

    @Test func `scales what is larger, and keeps its type where it can`() throws {
        #expect(isAVIFLoaded)
        var plan = ImagePlan()
        plan.scale = (12, 12)
        let cases: [([UInt8], ImageKind)] = [
            (SampleImage.png(), .png), (SampleImage.gif(), .png),
            (try SampleFile.read("progressive.jpg"), .jpeg),
            (try SampleFile.read("lossy.webp"), .jpeg),
            (try SampleFile.read("lossless-alpha.webp"), .png),
            (try SampleFile.read("opaque.avif"), .jpeg), (try SampleFile.read("alpha.avif"), .png),
        ]
        for (bytes, kind) in cases {
            let made = try #require(try plan.apply(to: bytes))
            #expect(made.kind == kind)
            #expect(try size(made.bytes) == [12, 8])
        }
        plan.scale = (24, 16)
        #expect(try plan.apply(to: SampleImage.png()) == nil)
        // It is shown as 16 × 24 pixels.
        let turned = try SampleFile.read("turned-10bit.avif")
        #expect(try size(#require(try plan.apply(to: turned)).bytes) == [11, 16])
        plan.scale = (16, 24)
        #expect(try plan.apply(to: turned) == nil)
    }

    @Test func `writes what is accepted where it only scales`() throws {
        var plan = ImagePlan()
        plan.scale = (12, 12)
        plan.accepted = [.webp, .png]
        let lossy = try SampleFile.read("lossy.webp")
        #expect(try plan.apply(to: lossy)?.kind == .png)
        plan.accepted = [.webp, .jpeg]
        let transparent = try SampleFile.read("lossless-alpha.webp")
        #expect(try plan.apply(to: transparent)?.kind == .jpeg)
        plan.accepted = [.webp]
        #expect(failure(plan, lossy) == .notWritable(.webp))
        plan.conversions = [.webp: .png]
        #expect(try plan.apply(to: lossy)?.kind == .png)
    }

    @Test func `rotates an image upright when it rewrites it`() throws {
        let jpeg = try ImageCodecs.encodeJPEG(try Raster.sample(), maximumBytes: 1 << 20)
        var segment: [UInt8] = Array("Exif\0\0MM".utf8) + [0, 42, 0, 0, 0, 8, 0, 1]
        segment += [1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]
        let turned =
            Array(jpeg.prefix(2)) + [0xFF, 0xE1, 0, UInt8(segment.count + 2)] + segment
            + Array(jpeg.dropFirst(2))
        #expect(try ImagePlan().apply(to: turned) == nil)
        var plan = ImagePlan()
        plan.conversions = [.jpeg: .png]
        let upright = try #require(try plan.apply(to: turned))
        #expect(try size(upright.bytes) == [16, 24])
        let raster = try ImageCodecs.decode(
            upright.bytes, ImageCodecs.inspect(upright.bytes), maximumPixels: 1000
        ).raster
        #expect(isClose(raster.pixel(2, 2), [0, 0, 255, 255]))
        #expect(isClose(raster.pixel(14, 2), [255, 0, 0, 255]))
    }
}
