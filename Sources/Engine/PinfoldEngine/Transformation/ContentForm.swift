import CacheStore
import ContentCoding
import HTTPCore
import Transformation

/// The coding in which a client is sent the content of a stored response.
enum ContentForm: Equatable {
    /// As it is stored.
    case stored
    /// Without the coding in which it is stored.
    case decoded
    /// In a coding that is made for clients.
    case encoded(ContentCoding)

    /// The codings that content is compressed in; of those with the same weight the first is used.
    ///
    /// Made in about the same time, brotli is 3 to 7 % shorter than zstd for text, and that is 1 to
    /// 5 % shorter than gzip. Besides, browsers that accept zstd accept brotli as well: one form
    /// serves them and those that do not.
    static let codings: [ContentCoding] = [.brotli, .zstd, .gzip]

    /// The form of content that is stored in these codings, in the order in which they were
    /// applied.
    ///
    /// A request without Accept-Encoding accepts every coding (RFC 9110 §12.5.3, rule 1). If not
    /// even unencoded content is acceptable, what is stored is as good.
    init(ofEncoded codings: [ContentCoding]?, for accepted: AcceptedCodings) {
        guard let codings, !codings.isEmpty, codings.count <= ContentCodings.maximumCodings,
            accepted.isPresent, accepted.accepts(.identity)
        else {
            self = .stored
            return
        }
        self = codings.allSatisfy(accepted.accepts) ? .stored : .decoded
    }

    /// The form of content that is stored without a coding, and compressed for clients that accept
    /// it. A client that does not send Accept-Encoding often supports no coding.
    init(ofCompressible accepted: AcceptedCodings) {
        guard accepted.isPresent,
            let best = accepted.best(of: Self.codings + [.identity]), best != .identity
        else {
            self = .stored
            return
        }
        self = .encoded(best)
    }

    /// What it is called beside the stored response; `nil` for the stored form.
    var rendition: Renditions.Form? {
        switch self {
        case .stored: nil
        case .decoded: ContentCoding.identity.rawValue
        case .encoded(let coding): coding.rawValue
        }
    }

    /// The coding of the content; `nil` for that in which it is stored.
    var coding: ContentCoding? {
        switch self {
        case .stored: nil
        case .decoded: .identity
        case .encoded(let coding): coding
        }
    }

    /// What was done, as the access log names it.
    var step: String {
        switch self {
        case .stored: "stored"
        case .decoded: "decoded"
        case .encoded(let coding): "compressed-\(coding.name)"
        }
    }

    /// How its entity tag is made of the stored one; the same content always gives the same bytes
    /// as long as the same libraries make them, so that a strong tag stays strong.
    var entityTags: EntityTagMapping? {
        switch self {
        case .stored: nil
        case .decoded: .decoded
        case .encoded: .compressed
        }
    }
}

extension EntityTagMapping {
    /// Of content without its coding, which is the same whoever decodes it.
    static let decoded = EntityTagMapping(identity: identity(of: "decoded 1"))

    /// Of compressed content.
    static let compressed = EntityTagMapping(
        identity: identity(of: "compressed 1 \(ContentCodings.libraries)"))

    /// The tag of the content as the origin sent it, of one of its forms; `nil` for any other tag.
    static func stored(_ tag: [UInt8]) -> [UInt8]? {
        decoded.original(tag) ?? compressed.original(tag)
    }
}

/// Content for which the media type or the path says that it is a compressed file rather than
/// something compressed on its way: whoever asks for an archive wants it, byte for byte.
enum CompressedFile {
    private static let types: Set<String> = [
        "application/gzip", "application/x-gzip", "application/x-gunzip", "application/x-tar",
        "application/x-compressed", "application/x-compress", "application/x-gtar",
        "application/x-tgz", "application/x-brotli", "application/zstd", "application/x-zstd",
    ]

    private static let suffixes: [[UInt8]] = [
        ".gz", ".tgz", ".taz", ".br", ".z", ".zst", ".tzst",
    ].map { Array($0.utf8) }

    /// - Parameters:
    ///   - type: the media type in lower case, without parameters; `nil` if it is unknown.
    ///   - path: of the request, with its query.
    static func isMeant(type: String?, path: [UInt8]) -> Bool {
        if let type, types.contains(type) { return true }
        let name = path.prefix { $0 != UInt8(ascii: "?") }
        return suffixes.contains { suffix in
            name.count > suffix.count
                && name.suffix(suffix.count).lazy.map(ASCII.lowercased).elementsEqual(suffix)
        }
    }
}

extension EntityTagMapping {
    private static func identity(of text: String) -> String {
        String(hexadecimal: FNV1a.hash32(text), digits: 8)
    }
}
