import Documents
import HTTPCore
import PinfoldConfiguration

/// Applies rules to the path and query of request targets in origin-form and absolute-form.
struct TargetRules: Sendable {
    private let prefixes: [PathPrefix]
    private let query: QueryChanges

    init(_ prefixes: [PrefixReplacement], _ query: QueryRules) {
        self.prefixes = prefixes.map(PathPrefix.init)
        self.query = QueryChanges(query)
    }

    /// Whether no target is ever changed.
    var isEmpty: Bool { prefixes.isEmpty && query.isEmpty }

    /// The new target of a request, in the same form; `nil` if it does not change.
    func target(of request: borrowing RequestHead, in bytes: Span<UInt8>) -> [UInt8]? {
        guard !isEmpty, request.form == .origin || request.form == .absolute else { return nil }
        // In absolute-form an empty path means the whole server (RFC 9112 §3.2.4).
        if request.method == .options, request.path.isEmpty { return nil }
        let part = bytes.extracting(request.path.indices)
        var mark = 0
        while mark < part.count, part[mark] != UInt8(ascii: "?") { mark += 1 }
        let newPath = path(replacing: part.extracting(0..<mark))
        let newQuery = query.query(
            replacing: mark < part.count ? part.extracting(mark + 1..<part.count) : nil)
        if newPath == nil, case .kept = newQuery { return nil }
        let authority = Int(request.target.start)..<Int(request.path.start)
        var target = [UInt8](copying: bytes.extracting(authority))
        if let newPath { target += newPath } else { target.append(part.extracting(0..<mark)) }
        switch newQuery {
        case .kept: target.append(part.extracting(mark..<part.count))
        case .removed: break
        case .replaced(let query):
            target.append(UInt8(ascii: "?"))
            target += query
        }
        return target
    }

    private func path(replacing path: Span<UInt8>) -> [UInt8]? {
        // In absolute-form an empty path means this one.
        let path = path.isEmpty ? [UInt8(ascii: "/")] : [UInt8](copying: path)
        for prefix in prefixes {
            guard let new = prefix.replaced(path) else { continue }
            return new == path ? nil : new
        }
        return nil
    }
}

/// A path prefix and its replacement. It is compared with the path's bytes as sent; characters in
/// it that a path may not contain are percent-encoded first.
private struct PathPrefix: Sendable {
    /// Without a trailing slash.
    private let prefix: [UInt8]
    /// Whether a slash must follow the prefix.
    private let needsSlash: Bool
    private let replacement: [UInt8]

    init(_ rule: PrefixReplacement) {
        let prefix = Self.encoded(rule.prefix)
        needsSlash = prefix.last == UInt8(ascii: "/")
        self.prefix = Self.withoutSlash(prefix)
        replacement = Self.encoded(rule.replacement)
    }

    private static func encoded(_ text: String) -> [UInt8] {
        var bytes = PercentCoding.encode(text.utf8) {
            ByteClass.isTarget($0) && $0 != UInt8(ascii: "?")
        }
        if bytes.first != UInt8(ascii: "/") { bytes.insert(UInt8(ascii: "/"), at: 0) }
        return bytes
    }

    private static func withoutSlash(_ path: [UInt8]) -> [UInt8] {
        path.last == UInt8(ascii: "/") ? path.dropLast() : path
    }

    /// The path with the replacement; `nil` if it does not begin with the prefix.
    func replaced(_ path: [UInt8]) -> [UInt8]? {
        guard path.starts(with: prefix) else { return nil }
        if path.count == prefix.count { return needsSlash ? nil : replacement }
        guard path[prefix.count] == UInt8(ascii: "/") else { return nil }
        return Self.withoutSlash(replacement) + path[prefix.count...]
    }
}
