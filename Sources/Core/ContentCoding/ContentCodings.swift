/// Undoes content codings, and applies them, over content that is there as a whole.
package enum ContentCodings {
    /// Codings that are undone one after another at most. Two occur where something that is
    /// compressed by itself is compressed again on its way; more only to exhaust somebody.
    package static let maximumCodings = 2

    /// The content without its codings. Content without a byte is empty under every coding, for
    /// that is how many servers send it.
    ///
    /// - Parameters:
    ///   - content: as it came.
    ///   - codings: in the order of Content-Encoding, in which they were applied.
    ///   - maximum: bytes that may come out. Not more than this and a block of 64 KiB is ever held
    ///     of what comes out of a coding, and 16 MiB beside for brotli's window; between two
    ///     codings a little more is allowed, for what cannot be compressed grows.
    ///   - interlude: what is done now and then meanwhile.
    package static func decode(
        _ content: UnsafeRawBufferPointer, codings: [ContentCoding], maximum: Int,
        interlude: (() -> Void)? = nil
    ) throws(ContentCodingError) -> [UInt8] {
        let applied = codings.filter { $0 != .identity }
        guard applied.count <= maximumCodings else {
            throw .tooManyCodings(maximum: maximumCodings)
        }
        guard let outermost = applied.last, !content.isEmpty else {
            guard content.count <= maximum else { throw .tooLarge(maximum: maximum) }
            return Array(content)
        }
        guard let inner = applied.dropLast().first else {
            return try undo(outermost, of: content, maximum: maximum, interlude)
        }
        do throws(ContentCodingError) {
            let between = try undo(
                outermost, of: content, maximum: maximum + maximum >> 8 + 4096, interlude)
            do throws(ContentCodingError) {
                return try decode(
                    between, codings: [inner], maximum: maximum, interlude: interlude)
            } catch {
                throw error.withoutOffset
            }
        } catch .tooLarge {
            throw .tooLarge(maximum: maximum)
        }
    }

    /// As above.
    package static func decode(
        _ content: [UInt8], codings: [ContentCoding], maximum: Int,
        interlude: (() -> Void)? = nil
    ) throws(ContentCodingError) -> [UInt8] {
        try content.span.withUnsafeBytes { (bytes) throws(ContentCodingError) -> [UInt8] in
            try decode(bytes, codings: codings, maximum: maximum, interlude: interlude)
        }
    }

    private static func undo(
        _ coding: ContentCoding, of content: UnsafeRawBufferPointer, maximum: Int,
        _ interlude: (() -> Void)?
    ) throws(ContentCodingError) -> [UInt8] {
        var output = BoundedOutput(
            maximum: maximum, expected: expected(coding, content), interlude: interlude)
        switch coding {
        case .identity: try output.append(content)
        case .gzip:
            var inflater = try Inflater(coding, .gzip, of: content)
            try inflater.run(into: &output)
        case .deflate:
            var inflater = try Inflater(coding, .ofDeflate(content), of: content)
            try inflater.run(into: &output)
        case .brotli: try Brotli.decode(content, into: &output)
        }
        return output.bytes
    }

    /// Bytes that will come out as far as can be told: the last member of a gzip file says how many
    /// it has, and none has more than 1,032 times its own.
    private static func expected(
        _ coding: ContentCoding, _ content: UnsafeRawBufferPointer
    ) -> Int {
        guard coding == .gzip, content.count >= 18 else { return 0 }
        let said = (1...4).reduce(0) { $0 << 8 | Int(content[content.count - $1]) }
        return said / 1032 <= content.count ? said : 0
    }

    /// The content under a coding. The same content always gives the same bytes, as long as the
    /// library is the same.
    ///
    /// - Parameters:
    ///   - effort: that is made for few bytes, where that is gzip or deflate.
    ///   - interlude: what is done now and then meanwhile, where that is gzip or deflate.
    package static func encode(
        _ content: UnsafeRawBufferPointer, as coding: ContentCoding,
        effort: CodingEffort = .usual, interlude: (() -> Void)? = nil
    ) throws(ContentCodingError) -> [UInt8] {
        switch coding {
        case .identity: Array(content)
        case .gzip: try Deflater.encode(content, .gzip, effort, interlude)
        case .deflate: try Deflater.encode(content, .zlib, effort, interlude)
        case .brotli: try Brotli.encode(content)
        }
    }

    /// As above.
    package static func encode(
        _ content: [UInt8], as coding: ContentCoding, effort: CodingEffort = .usual,
        interlude: (() -> Void)? = nil
    ) throws(ContentCodingError) -> [UInt8] {
        try content.span.withUnsafeBytes { (bytes) throws(ContentCodingError) -> [UInt8] in
            try encode(bytes, as: coding, effort: effort, interlude: interlude)
        }
    }
}

/// The effort made to compress.
package enum CodingEffort: Sendable {
    /// As fast as can be.
    case least
    /// Between speed and size.
    case usual
}
