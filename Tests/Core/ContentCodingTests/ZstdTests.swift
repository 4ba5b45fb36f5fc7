import Testing

@testable import ContentCoding

@Suite("The coding zstd, by RFC 8878 and RFC 9659")
struct ZstdTests {
    private let text = Array(String(repeating: "What comes in goes out. ", count: 40).utf8)

    private func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(digits[$0] << 4 | digits[$0 + 1])
        }
    }

    /// A frame to be skipped.
    private func skippable(_ kind: UInt8, _ content: [UInt8]) -> [UInt8] {
        [0x50 | kind, 0x2A, 0x4D, 0x18, UInt8(content.count), 0, 0, 0] + content
    }

    /// What comes of content that arrives whole, if that is what comes of it in parts of any size
    /// as well.
    private func decode(_ content: [UInt8]) -> Result<[UInt8], ContentCodingError> {
        let whole: Result<[UInt8], ContentCodingError>
        do throws(ContentCodingError) {
            whole = .success(
                try ContentCodings.decode(content, codings: [.zstd], maximum: 1 << 24))
        } catch {
            whole = .failure(error)
        }
        for partBytes in [1, 2, 3, 5, 64, 1 << 20] {
            let arriving = decode(content, partBytes: partBytes)
            #expect(arriving == whole.mapError(\.withoutOffset), "parts of \(partBytes)")
        }
        return whole
    }

    private func decode(
        _ content: [UInt8], partBytes: Int
    ) -> Result<[UInt8], ContentCodingError> {
        do throws(ContentCodingError) {
            var decoder = try StreamDecoder([.zstd])
            var (output, rest) = ([UInt8](), content[...])
            while !rest.isEmpty {
                decoder.feed(Array(rest.prefix(partBytes)))
                while let block = try decoder.next() { output += block }
                rest = rest.dropFirst(partBytes)
            }
            try decoder.finish()
            return .success(output)
        } catch {
            return .failure(error)
        }
    }

    /// Magic number, descriptor, window, dictionary, size.
    @Test(
        arguments: [
            ("28b52ffd 00 58", 2 << 20, 0, nil),
            ("28b52ffd 00 00", 1024, 0, nil),
            ("28b52ffd 04 68", 8 << 20, 0, nil),
            ("28b52ffd 00 69", 9 << 20, 0, nil),
            ("28b52ffd 00 ff", 15 << 38, 0, nil),
            ("28b52ffd 01 00 07", 1024, 7, nil),
            ("28b52ffd 02 00 0102", 1024, 0x201, nil),
            ("28b52ffd 03 00 01020304", 1024, 0x403_0201, nil),
            ("28b52ffd 20 05", 5, 0, 5),
            ("28b52ffd 21 07 05", 5, 7, 5),
            ("28b52ffd 60 0500", 261, 0, 261),
            ("28b52ffd 40 08 0500", 2048, 0, 261),
            ("28b52ffd a0 00000001", 1 << 24, 0, 1 << 24),
            ("28b52ffd 80 08 00000001", 2048, 0, 1 << 24),
            ("28b52ffd e0 ffffffffffffffff", .max, 0, .max),
            ("28b52ffd c3 08 01000000 0000000000000080", 2048, 1, 1 << 63),
        ] as [(String, UInt64, UInt64, UInt64?)])
    func `a frame's header states window, dictionary and size`(
        hex: String, windowBytes: UInt64, dictionary: UInt64, contentBytes: UInt64?
    ) {
        let header = bytes(hex)
        for count in 0..<header.count {
            #expect(ZstdFrameHeader.read(Array(header.prefix(count))) == .unfinished)
        }
        let expected = ZstdFrameHeader.frame(
            windowBytes: windowBytes, dictionary: dictionary, contentBytes: contentBytes)
        #expect(ZstdFrameHeader.read(header) == .whole(expected))
    }

    @Test func `frames to be skipped have sixteen numbers, and state their size`() {
        for kind in 0..<UInt8(16) {
            let header = [0x50 | kind, 0x2A, 0x4D, 0x18, 1, 2, 3, 0xFF]
            for count in 0..<8 {
                #expect(ZstdFrameHeader.read(Array(header.prefix(count))) == .unfinished)
            }
            #expect(ZstdFrameHeader.read(header) == .whole(.skippable(bytes: 0xFF03_0201)))
        }
    }

    /// The fourth is how versions before 0.8 began frames, the sixth is gzip.
    @Test(arguments: ["00", "29", "28b52ffe", "27b52ffd", "502a4d19", "1f8b", "4f2a4d18", "512b"])
    func `nothing else begins a frame`(hex: String) {
        #expect(ZstdFrameHeader.read(bytes(hex)) == .invalid)
        #expect(
            decode(bytes(hex))
                == .failure(
                    .corrupt(.zstd, offset: 0, "it does not begin with a frame")))
    }

    @Test func `all frames are one content, and those to be skipped are none`() throws {
        let frame = try ContentCodings.encode(text, as: .zstd)
        let other = bytes("28b52ffd2005290000" + "68656c6c6f")
        let nothing = try ContentCodings.encode([], as: .zstd)
        let skipped = skippable(3, [UInt8](repeating: 0x28, count: 200))
        let frames = skipped + frame + skippable(0, []) + nothing + other + frame + skipped
        #expect(decode(frames) == .success(text + Array("hello".utf8) + text))
        #expect(decode(skipped) == .success([]))
        #expect(decode(skippable(15, []) + skippable(0, [])) == .success([]))
        #expect(
            decode(Array(frames.dropLast()))
                == .failure(.truncated(.zstd, offset: frames.count - 1)))
        #expect(
            decode(frames + [0x28, 0xB5])
                == .failure(.truncated(.zstd, offset: frames.count + 2)))
        #expect(
            decode(frames + [0x28, 0xB5, 0])
                == .failure(
                    .trailingData(.zstd, offset: frames.count)))
        #expect(
            decode(skipped + Array("hello".utf8))
                == .failure(.trailingData(.zstd, offset: skipped.count)))
    }

    /// Each with an empty last block, whose size is 0.
    @Test(
        arguments: [
            ("28b52ffd 00 68", nil),
            ("28b52ffd 00 69", "it needs a window of 9437184 bytes, and 8388608 are allowed"),
            ("28b52ffd 40 70 0000", "it needs a window of 16777216 bytes, and 8388608 are allowed"),
            (
                "28b52ffd a0 01008000",
                "it needs a window of 8388609 bytes, and 8388608 are allowed"
            ),
            ("28b52ffd 01 58 00", nil),
            ("28b52ffd 01 58 07", "it needs a dictionary"),
        ] as [(String, String?)])
    func `a frame that needs too large a window, or a dictionary, is refused`(
        header: String, refusal: String?
    ) throws {
        let frame = bytes(header + "010000")
        guard let refusal else {
            #expect(decode(frame) == .success([]))
            return
        }
        #expect(decode(frame) == .failure(.corrupt(.zstd, offset: 0, refusal)))
        let before = try ContentCodings.encode(text, as: .zstd)
        #expect(
            decode(before + frame) == .failure(.corrupt(.zstd, offset: before.count, refusal)))
    }

    @Test func `content of another size than stated is refused`() {
        let wrong = "its content is not as long as it states"
        #expect(
            decode(bytes("28b52ffd 20 05 010000"))
                == .failure(.corrupt(.zstd, offset: 9, wrong)))
        for size in ["04", "06"] {
            guard
                case .failure(.corrupt(.zstd, _?, _)) = decode(
                    bytes("28b52ffd 20 \(size) 290000" + "68656c6c6f"))
            else {
                Issue.record("five bytes were taken for \(size)")
                continue
            }
        }
    }

    @Test func `the checksum is verified`() throws {
        var frame = try ContentCodings.encode(text, as: .zstd)
        let count = frame.count
        frame[count - 1] ^= 1
        #expect(
            decode(frame)
                == .failure(
                    .corrupt(
                        .zstd, offset: count - 4, "Restored data doesn't match checksum")))
    }

    /// Of a stream of events, nothing may wait for what has not happened.
    @Test func `what a server has flushed comes out at once`() throws {
        var decoder = try StreamDecoder([.zstd])
        for (part, expected) in [
            ("28b52ffd0058" + "280000" + "68656c6c6f", "hello"), ("1800", nil),
            ("00" + "796f75", "you"), ("010000", nil),
        ] {
            decoder.feed(bytes(part))
            let block = try decoder.next()
            #expect(block == expected.map { Array($0.utf8) })
            // However often it is asked.
            for _ in 0..<40 {
                let more = try decoder.next()
                #expect(more == nil)
            }
        }
        try decoder.finish()
    }

    @Test(arguments: [0, 1, 255, 256, 70_000, 1 << 20, 9 << 20])
    func `what is encoded is one frame with its size and a window within the limit`(
        count: Int
    ) throws {
        let content = (0..<count).map { UInt8(truncatingIfNeeded: $0 * $0 >> 7) }
        let encoded = try ContentCodings.encode(content, as: .zstd)
        let header = (5...14).lazy.map { ZstdFrameHeader.read(Array(encoded.prefix($0))) }
            .first { $0 != .unfinished }
        guard case .whole(.frame(let windowBytes, 0, UInt64(count)?)) = header else {
            Issue.record("\(String(describing: header))")
            return
        }
        #expect(windowBytes <= ZstdFrameHeader.maximumWindowBytes)
        // With a checksum.
        #expect(encoded[4] & 4 != 0)
        #expect(decode(encoded, partBytes: 1 << 20) == .success(content))
    }
}
