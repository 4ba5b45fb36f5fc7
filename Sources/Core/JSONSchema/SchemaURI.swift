/// The parts of a URI or a relative reference (RFC 3986 §4.1).
struct SchemaURI {
    private var scheme: Substring?
    private var authority: Substring?
    private var path: String
    private var query: Substring?
    private(set) var fragment: String?

    init(_ text: String) {
        var rest = Substring(text)
        if let sign = rest.firstIndex(of: "#") {
            fragment = String(rest[rest.index(after: sign)...])
            rest = rest[..<sign]
        }
        if let sign = rest.firstIndex(of: "?") {
            query = rest[rest.index(after: sign)...]
            rest = rest[..<sign]
        }
        if let sign = rest.firstIndex(where: { ":/".contains($0) }), rest[sign] == ":",
            sign > rest.startIndex
        {
            scheme = rest[..<sign]
            rest = rest[rest.index(after: sign)...]
        }
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: "/") ?? rest.endIndex
            authority = rest[..<end]
            rest = rest[end...]
        }
        path = String(rest)
    }

    var withoutFragment: String {
        var text = scheme.map { "\($0):" } ?? ""
        if let authority { text += "//\(authority)" }
        text += path
        if let query { text += "?\(query)" }
        return text
    }

    var text: String { withoutFragment + (fragment.map { "#\($0)" } ?? "") }

    /// RFC 3986 §5.2.2.
    func resolved(against base: SchemaURI) -> SchemaURI {
        var result = joined(to: base)
        result.path = result.path.removingDotSegments
        return result
    }

    private func joined(to base: SchemaURI) -> SchemaURI {
        guard scheme == nil else { return self }
        var result = self
        result.scheme = base.scheme
        guard authority == nil else { return result }
        result.authority = base.authority
        if path.isEmpty {
            result.path = base.path
            if query == nil { result.query = base.query }
        } else if !path.hasPrefix("/") {
            let slash = base.path.lastIndex(of: "/")
            let folder = slash.map { base.path[...$0] } ?? (base.authority == nil ? "" : "/")
            result.path = folder + path
        }
        return result
    }
}

extension String {
    /// RFC 3986 §5.2.4, for paths that begin with a slash.
    fileprivate var removingDotSegments: String {
        guard hasPrefix("/") else { return self }
        var segments: [Substring] = []
        let all = dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (index, segment) in all.enumerated() {
            let isLast = index == all.count - 1
            switch segment {
            case ".": if isLast { segments.append("") }
            case "..":
                _ = segments.popLast()
                if isLast { segments.append("") }
            default: segments.append(segment)
            }
        }
        return "/" + segments.joined(separator: "/")
    }
}
