/// A type of image, recognized by the first bytes of its content and nothing else.
package enum ImageKind: UInt8, Sendable, CaseIterable {
    case png
    case jpeg
    case gif
    case webp
    case avif

    /// The type whose signature the content begins with; `nil` if there is none, or too few bytes
    /// to tell.
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

    /// The name used in messages.
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

/// The contents of an image's header, read and walked over without decoding anything.
package struct ImageHeader: Sendable, Equatable {
    package var kind: ImageKind
    /// In pixels, as stored: before the rotation that ``orientation`` asks for. At least 1.
    package var width: Int
    /// As for ``width``.
    package var height: Int
    /// The number of pictures of an animation; 1 for a still image.
    package var frames = 1
    /// Bits per sample, or per palette sample if there is a palette.
    package var bitsPerSample = 8
    /// EXIF's orientation, 1...8, of JPEG only; 1 for as stored. AVIF's is known only after
    /// decoding.
    package var orientation = 1

    package init(kind: ImageKind, width: Int, height: Int) {
        self.kind = kind
        self.width = width
        self.height = height
    }
}

extension [UInt8] {
    func begins(with prefix: some Collection<UInt8>) -> Bool { holds(prefix, at: 0) }

    /// Whether these bytes are found at this offset.
    func holds(_ bytes: some Collection<UInt8>, at offset: Int) -> Bool {
        count - offset >= bytes.count && self[offset..<(offset + bytes.count)].elementsEqual(bytes)
    }

    /// A big-endian number; `nil` if there are too few bytes.
    func big(_ bytes: Int, at offset: Int) -> Int? {
        guard offset >= 0, count - offset >= bytes else { return nil }
        return self[offset..<(offset + bytes)].reduce(0) { $0 << 8 | Int($1) }
    }

    /// A little-endian number; `nil` if there are too few bytes.
    func little(_ bytes: Int, at offset: Int) -> Int? {
        guard offset >= 0, count - offset >= bytes else { return nil }
        return self[offset..<(offset + bytes)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
