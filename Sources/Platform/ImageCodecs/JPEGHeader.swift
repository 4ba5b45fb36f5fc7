/// The marker segments of a JPEG file (ISO/IEC 10918-1, annex B) up to the frame header, and the
/// orientation given by an EXIF segment among them.
enum JPEGSegments {
    static func inspect(_ bytes: [UInt8]) throws(ImageCodecError) -> ImageHeader {
        var offset = 2
        var orientation = 1
        while true {
            let marker = try nextMarker(bytes, &offset)
            switch marker {
            case 0x01, 0xD0...0xD7:
                continue
            case 0xD8, 0xD9, 0xDA:
                // A second start, the end, or data, before any frame.
                throw .damaged(.jpeg)
            default:
                break
            }
            guard let length = bytes.big(2, at: offset) else { throw .truncated(.jpeg) }
            guard length >= 2 else { throw .damaged(.jpeg) }
            guard bytes.count - offset >= length else { throw .truncated(.jpeg) }
            if isFrame(marker) {
                return try frame(bytes, at: offset, length: length, orientation)
            }
            if marker == 0xE1 {
                let end = offset + length
                orientation = Exif.orientation(bytes, from: offset + 2, to: end) ?? orientation
            }
            offset += length
        }
    }

    /// The byte after 0xFF; any number of fill bytes may precede it.
    private static func nextMarker(
        _ bytes: [UInt8], _ offset: inout Int
    ) throws(ImageCodecError) -> UInt8 {
        guard offset < bytes.count else { throw .truncated(.jpeg) }
        guard bytes[offset] == 0xFF else { throw .damaged(.jpeg) }
        while offset < bytes.count, bytes[offset] == 0xFF { offset += 1 }
        guard offset < bytes.count else { throw .truncated(.jpeg) }
        defer { offset += 1 }
        return bytes[offset]
    }

    /// SOF0...SOF15, except the numbers in that range that belong to DHT, JPG and DAC.
    private static func isFrame(_ marker: UInt8) -> Bool {
        (0xC0...0xCF).contains(marker) && ![0xC4, 0xC8, 0xCC].contains(marker)
    }

    private static func frame(
        _ bytes: [UInt8], at offset: Int, length: Int, _ orientation: Int
    ) throws(ImageCodecError) -> ImageHeader {
        guard length >= 8, let depth = bytes.big(1, at: offset + 2),
            let height = bytes.big(2, at: offset + 3), let width = bytes.big(2, at: offset + 5)
        else { throw .damaged(.jpeg) }
        guard width > 0 else { throw .damaged(.jpeg) }
        // The height may follow the data (DNL), which no decoder supports.
        guard height > 0 else { throw .unsupported(.jpeg) }
        var header = ImageHeader(kind: .jpeg, width: width, height: height)
        header.bitsPerSample = depth
        header.orientation = orientation
        return header
    }
}

/// The orientation in an EXIF segment (CIPA DC-008, tag 0x0112 of the first directory).
enum Exif {
    /// The maximum number of directory entries that are examined.
    private static let mostEntries = 512

    /// 1...8; `nil` if this is not EXIF, has no orientation, or an impossible one.
    static func orientation(_ bytes: [UInt8], from start: Int, to end: Int) -> Int? {
        guard end - start > 14, end <= bytes.count, bytes.holds("Exif\0\0".utf8, at: start) else {
            return nil
        }
        let tiff = start + 6
        let isLittle = bytes.holds("II*\0".utf8, at: tiff)
        guard isLittle || bytes.holds("MM\0*".utf8, at: tiff) else { return nil }
        func number(_ size: Int, _ offset: Int) -> Int? {
            guard offset >= tiff, end - offset >= size else { return nil }
            return isLittle ? bytes.little(size, at: offset) : bytes.big(size, at: offset)
        }
        guard let directory = number(4, tiff + 4), let count = number(2, tiff + directory) else {
            return nil
        }
        for index in 0..<min(count, mostEntries) {
            let entry = tiff + directory + 2 + 12 * index
            guard let tag = number(2, entry) else { return nil }
            if tag == 0x0112, number(2, entry + 2) == 3, let value = number(2, entry + 8) {
                return (1...8).contains(value) ? value : nil
            }
        }
        return nil
    }
}
