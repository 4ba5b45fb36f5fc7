/// A type of image that is recognized, by the first bytes of its content and by nothing else.
package enum ImageKind: UInt8, Sendable, CaseIterable {
    case png
    case jpeg
    case gif
    case webp
    case avif

    /// The type whose signature the content begins with; nil: none, or too few bytes to say.
    package init?(signatureOf bytes: [UInt8]) {
        if bytes.begins(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if bytes.begins(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if bytes.begins(with: "GIF87a".utf8) || bytes.begins(with: "GIF89a".utf8) {
            self = .gif
        } else if bytes.begins(with: "RIFF".utf8), bytes.holds("WEBP".utf8, at: 8) {
            self = .webp
        } else if bytes.holds("ftyp".utf8, at: 4), AVIFBoxes.nameAVIF(bytes) {
            self = .avif
        } else {
            return nil
        }
    }

    /// What messages call it.
    package var name: String {
        switch self {
        case .png: "PNG"
        case .jpeg: "JPEG"
        case .gif: "GIF"
        case .webp: "WebP"
        case .avif: "AVIF"
        }
    }
}

/// What the head of an image says, and the walk over its parts: nothing is decoded for it.
package struct ImageHeader: Sendable, Equatable {
    package var kind: ImageKind
    /// In pixels, as stored: before the turn that ``orientation`` asks for. At least 1.
    package var width: Int
    /// The same.
    package var height: Int
    /// Pictures of an animation; 1: it is none.
    package var frames = 1
    /// Bits of a sample, of the palette's where there is one.
    package var bitsPerSample = 8
    /// EXIF's orientation, 1...8, of JPEG only; 1: as stored. What AVIF says about it is known when
    /// it is decoded.
    package var orientation = 1

    package init(kind: ImageKind, width: Int, height: Int) {
        self.kind = kind
        self.width = width
        self.height = height
    }
}

extension [UInt8] {
    func begins(with prefix: some Collection<UInt8>) -> Bool { holds(prefix, at: 0) }

    /// Whether these bytes stand there.
    func holds(_ bytes: some Collection<UInt8>, at offset: Int) -> Bool {
        count - offset >= bytes.count && self[offset..<(offset + bytes.count)].elementsEqual(bytes)
    }

    /// A number, the highest byte first; nil: there are too few bytes.
    func big(_ bytes: Int, at offset: Int) -> Int? {
        guard offset >= 0, count - offset >= bytes else { return nil }
        return self[offset..<(offset + bytes)].reduce(0) { $0 << 8 | Int($1) }
    }

    /// A number, the lowest byte first; nil: there are too few bytes.
    func little(_ bytes: Int, at offset: Int) -> Int? {
        guard offset >= 0, count - offset >= bytes else { return nil }
        return self[offset..<(offset + bytes)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
