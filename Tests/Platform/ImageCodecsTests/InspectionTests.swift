import ImageCodecs
import TestSupport
import Testing

@Suite("The head of an image")
struct InspectionTests {
    private func failure(of bytes: [UInt8]) -> ImageCodecError? {
        do {
            _ = try ImageCodecs.inspect(bytes)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        arguments: [
            [], [0x89], Array("<html>".utf8), Array("GIF88a".utf8), Array("RIFF....WAVE".utf8),
            Array("BM".utf8), [0xFF, 0xD8], [0, 0, 0, 16] + Array("ftypmp42....isom".utf8),
        ] as [[UInt8]])
    func `is recognized by its first bytes only`(bytes: [UInt8]) {
        #expect(failure(of: bytes) == .notAnImage)
    }

    @Test func `may be named by a compatible brand`() {
        let bytes = [0, 0, 0, 24] + Array("ftypmif1....miafavif".utf8)
        #expect(ImageKind(signatureOf: bytes) == .avif)
    }

    /// A header, changed at one position.
    private func changed(_ bytes: [UInt8], _ offset: Int, _ new: [UInt8]) -> [UInt8] {
        var bytes = bytes
        bytes.replaceSubrange(offset..<(offset + new.count), with: new)
        return bytes
    }

    @Test func `that contradicts its format is damaged`() throws {
        let png = SampleImage.png()
        #expect(failure(of: changed(png, 16, [0, 0, 0, 0])) == .damaged(.png))
        #expect(failure(of: changed(png, 16, [0x80, 0, 0, 0])) == .damaged(.png))
        #expect(failure(of: changed(png, 24, [3])) == .damaged(.png))
        #expect(failure(of: changed(png, 12, [0x49, 0x44, 0x41, 0x54])) == .damaged(.png))
        #expect(failure(of: changed(png, 33, [0xFF, 0, 0, 0])) == .damaged(.png))
        let gif = SampleImage.gif()
        #expect(failure(of: changed(gif, 25, [0])) == .damaged(.gif))
        #expect(failure(of: changed(gif, gif.count - 1, [0x2B])) == .damaged(.gif))
        let lossy = try SampleFile.read("lossy.webp")
        #expect(failure(of: changed(lossy, 4, [4, 0, 0, 0])) == .damaged(.webp))
        #expect(failure(of: changed(lossy, 12, Array("XXXX".utf8))) == .damaged(.webp))
        #expect(failure(of: changed(lossy, 26, [0, 0])) == .damaged(.webp))
        let jpeg = try SampleFile.read("progressive.jpg")
        #expect(failure(of: changed(jpeg, 4, [0, 1])) == .damaged(.jpeg))
        #expect(failure(of: changed(jpeg, 3, [0xDA])) == .damaged(.jpeg))
        let avif = try SampleFile.read("opaque.avif")
        let end = Int(avif[3])
        #expect(failure(of: changed(avif, end, [0, 0, 0, 7])) == .damaged(.avif))
    }

    /// An EXIF segment with one entry.
    private func exif(_ order: String, _ tag: [UInt8], _ value: [UInt8]) -> [UInt8] {
        let isLittle = order == "II"
        func number(_ bytes: [UInt8]) -> [UInt8] { isLittle ? bytes.reversed() : bytes }
        var content = Array("Exif\0\0".utf8) + Array(order.utf8) + number([0, 42])
        content += number([0, 0, 0, 8]) + number([0, 1])
        content += number(tag) + number([0, 3]) + number([0, 0, 0, 1]) + number(value) + [0, 0]
        content += [0, 0, 0, 0]
        return [0xFF, 0xE1, 0, UInt8(content.count + 2)] + content
    }

    @Test(
        arguments: [
            ("II", [1, 0x12], [0, 6], 6), ("MM", [1, 0x12], [0, 6], 6),
            ("MM", [1, 0x12], [0, 8], 8), ("MM", [1, 0x12], [0, 9], 1),
            ("MM", [1, 0x12], [0, 0], 1), ("MM", [1, 0x13], [0, 6], 1),
            ("XX", [1, 0x12], [0, 6], 1),
        ] as [(String, [UInt8], [UInt8], Int)])
    func `of JPEG has EXIF's orientation`(
        order: String, tag: [UInt8], value: [UInt8], orientation: Int
    ) throws {
        let jpeg = try SampleFile.read("progressive.jpg")
        let segment = exif(order, tag, value)
        let turned = Array(jpeg.prefix(2)) + segment + Array(jpeg.dropFirst(2))
        #expect(try ImageCodecs.inspect(turned).orientation == orientation)
    }

    @Test func `never stops the process, whatever it contains`() throws {
        #expect(isAVIFLoaded)
        let names = ["lossy.webp", "animated.webp", "opaque.avif", "progressive.jpg"]
        var files = try names.map { try SampleFile.read($0) }
        files += [SampleImage.png(), SampleImage.gif()]
        let seed: UInt64 = 20_261_123
        var random = SeededRandom(seed: seed)
        var refused = 0
        for _ in 0..<3000 {
            var bytes = random.pick(files)
            for _ in 0..<(1 + random.below(4)) {
                bytes[random.below(bytes.count)] = UInt8(truncatingIfNeeded: random.next())
            }
            if random.chance(20) { bytes.removeLast(random.below(bytes.count)) }
            do {
                let header = try ImageCodecs.inspect(bytes)
                #expect(header.width > 0 && header.height > 0 && header.frames > 0, "seed \(seed)")
            } catch {
                refused += 1
            }
        }
        #expect(refused > 100)
    }
}
