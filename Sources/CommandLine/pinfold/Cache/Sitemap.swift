import ContentCoding
import Documents

/// What a sitemap lists (sitemaps.org): pages, or other sitemaps.
struct Sitemap: Equatable {
    /// Why a file is no sitemap.
    enum SitemapError: Error, Equatable, CustomStringConvertible {
        case notXML(String)
        case tooLarge
        case notCompressed(String)
        /// The root element is none of a sitemap's.
        case otherDocument(String)

        var description: String {
            switch self {
            case .notXML(let reason): "not valid XML: \(reason)"
            case .tooLarge: "larger than \(Sitemap.maximumBytes >> 20) MiB"
            case .notCompressed(let reason): "not valid gzip: \(reason)"
            case .otherDocument(let name):
                "its root element is \(name); expected urlset or sitemapindex"
            }
        }
    }

    /// The most bytes of a sitemap, decompressed; sitemaps.org allows 50 MB.
    static let maximumBytes = 64 << 20

    /// The URLs of pages.
    private(set) var pages: [String] = []
    /// The URLs of other sitemaps.
    private(set) var sitemaps: [String] = []

    /// Reads a sitemap, which may be compressed by gzip.
    init(_ content: [UInt8]) throws(SitemapError) {
        var content = content
        if content.starts(with: [0x1F, 0x8B]) {
            do throws(ContentCodingError) {
                content = try ContentCodings.decode(
                    content, codings: [.gzip], maximum: Self.maximumBytes)
            } catch {
                if case .tooLarge = error { throw .tooLarge }
                throw .notCompressed("\(error)")
            }
        }
        guard content.count <= Self.maximumBytes else { throw .tooLarge }
        var limits = DocumentLimits.standard
        limits.bytes = Self.maximumBytes
        limits.values = 4_000_000
        let parser = XMLPushParser(Sink(), limits: limits)
        do throws(DocumentError) {
            try content.span.withUnsafeBytes { (bytes) throws(DocumentError) in
                try parser.push(bytes)
            }
            try parser.finish()
        } catch {
            throw .notXML("\(error)")
        }
        let sink = parser.sink
        guard sink.root == "urlset" || sink.root == "sitemapindex" else {
            throw .otherDocument(sink.root)
        }
        pages = sink.root == "urlset" ? sink.locations : []
        sitemaps = sink.root == "urlset" ? [] : sink.locations
    }

    /// Collects the `loc` elements that are in `url` and `sitemap` elements.
    private struct Sink: XMLSink {
        var root = ""
        var locations: [String] = []
        private var open: [String] = []
        private var text: [UInt8] = []

        /// A name without its prefix.
        private func name(_ bytes: UnsafeRawBufferPointer) -> String {
            let name = String(decoding: bytes, as: UTF8.self)
            return name.split(separator: ":").last.map { String($0) } ?? name
        }

        private var isInLocation: Bool {
            open.count == 3 && open[2] == "loc" && (open[1] == "url" || open[1] == "sitemap")
        }

        mutating func start(_ tag: XMLTag) throws(DocumentError) {
            open.append(name(tag.name))
            if open.count == 1 { root = open[0] }
            text = []
        }

        mutating func text(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
            if isInLocation { self.text += text }
        }

        mutating func end(_ name: UnsafeRawBufferPointer) throws(DocumentError) {
            if isInLocation {
                let location = String(decoding: text, as: UTF8.self).split(
                    whereSeparator: \.isWhitespace)
                if location.count == 1 { locations.append(String(location[0])) }
            }
            open.removeLast()
        }
    }
}
