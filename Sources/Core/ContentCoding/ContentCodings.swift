import CBrotli
import CZlib
import CZstd

/// Decodes and applies content codings for content that is entirely in memory.
package enum ContentCodings {
    /// The maximum number of codings that are decoded one after another. Two occur if something
    /// that is already compressed is compressed again on its way; more only in attempts to exhaust
    /// resources.
    package static let maximumCodings = 2

    /// Decodes the content. Empty content is empty in every coding, because many servers send it
    /// that way.
    ///
    /// - Parameters:
    ///   - content: the content as received.
    ///   - codings: in the order of Content-Encoding, in which they were applied.
    ///   - maximum: the maximum size of the result in bytes. A coding's output never takes more
    /// memory than this and a block of 64 KiB, plus the window: 16 MiB for brotli, and 8 MiB for
    /// zstd. Between two codings slightly more is allowed, because incompressible data grows.
    ///   - yieldPoint: called from time to time during the work.
    package static func decode(
        _ content: UnsafeRawBufferPointer, codings: [ContentCoding], maximum: Int,
        yieldPoint: (() -> Void)? = nil
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
            return try undo(outermost, of: content, maximum: maximum, yieldPoint)
        }
        do throws(ContentCodingError) {
            let between = try undo(
                outermost, of: content, maximum: maximum + maximum >> 8 + 4096, yieldPoint)
            do throws(ContentCodingError) {
                return try decode(
                    between, codings: [inner], maximum: maximum, yieldPoint: yieldPoint)
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
        yieldPoint: (() -> Void)? = nil
    ) throws(ContentCodingError) -> [UInt8] {
        try content.span.withUnsafeBytes { (bytes) throws(ContentCodingError) -> [UInt8] in
            try decode(bytes, codings: codings, maximum: maximum, yieldPoint: yieldPoint)
        }
    }

    private static func undo(
        _ coding: ContentCoding, of content: UnsafeRawBufferPointer, maximum: Int,
        _ yieldPoint: (() -> Void)?
    ) throws(ContentCodingError) -> [UInt8] {
        var output = BoundedOutput(
            maximum: maximum, expected: expected(coding, content), yieldPoint: yieldPoint)
        switch coding {
        case .identity: try output.append(content)
        case .gzip:
            var inflater = try Inflater(coding, .gzip, of: content)
            try inflater.run(into: &output)
        case .deflate:
            var inflater = try Inflater(coding, .ofDeflate(content), of: content)
            try inflater.run(into: &output)
        case .brotli: try Brotli.decode(content, into: &output)
        case .zstd: try ZstdDecoder.decode(content, into: &output)
        }
        return output.bytes
    }

    /// The expected size of the output, as far as it is known: the last member of a gzip file
    /// states its size, and none expands by more than a factor of 1,032.
    private static func expected(
        _ coding: ContentCoding, _ content: UnsafeRawBufferPointer
    ) -> Int {
        guard coding == .gzip, content.count >= 18 else { return 0 }
        let declared = (1...4).reduce(0) { $0 << 8 | Int(content[content.count - $1]) }
        return declared / 1032 <= content.count ? declared : 0
    }

    /// The versions of the libraries that encode: others may make other bytes of the same content.
    package static let libraries =
        "zlib \(String(cString: zlibVersion())) brotli \(BrotliEncoderVersion())"
        + " zstd \(ZSTD_versionNumber())"

    /// Encodes the content. The same content always gives the same bytes, as long as the library is
    /// the same.
    ///
    /// - Parameters:
    ///   - effort: the effort made to save bytes, for gzip and deflate.
    ///   - yieldPoint: called from time to time during the work, except for brotli.
    package static func encode(
        _ content: UnsafeRawBufferPointer, as coding: ContentCoding,
        effort: CodingEffort = .usual, yieldPoint: (() -> Void)? = nil
    ) throws(ContentCodingError) -> [UInt8] {
        switch coding {
        case .identity: Array(content)
        case .gzip: try Deflater.encode(content, .gzip, effort, yieldPoint)
        case .deflate: try Deflater.encode(content, .zlib, effort, yieldPoint)
        case .brotli: try Brotli.encode(content)
        case .zstd: try Zstd.encode(content, yieldPoint)
        }
    }

    /// As above.
    package static func encode(
        _ content: [UInt8], as coding: ContentCoding, effort: CodingEffort = .usual,
        yieldPoint: (() -> Void)? = nil
    ) throws(ContentCodingError) -> [UInt8] {
        try content.span.withUnsafeBytes { (bytes) throws(ContentCodingError) -> [UInt8] in
            try encode(bytes, as: coding, effort: effort, yieldPoint: yieldPoint)
        }
    }
}

/// The effort made to compress.
package enum CodingEffort: Sendable {
    /// As fast as possible.
    case least
    /// A compromise between speed and size.
    case usual
}
