import HTTPCore

/// The lines of a head, with `***` in place of what is secret: nobody is shown that, whatever they
/// have proved, except in a recording where the configuration allows it.
struct MaskedHead: Sendable {
    /// A field.
    struct Field: Sendable, Equatable {
        var name: String
        /// `***` if it is secret.
        var value: String
        var isMasked: Bool
    }

    static let mask = "***"

    /// The fields whose values are secrets of clients, of servers, or of the gateway itself:
    /// Authorization is what `request.authorization` writes.
    private static let secrets: Set<String> = [
        "authorization", "proxy-authorization", "cookie", "set-cookie", "cookie2", "set-cookie2",
        "authentication-info", "proxy-authentication-info", "x-purge-token",
    ]

    /// Many servers take `_` for `-`, and the gateway ends X-Purge-Token in that form as well.
    static func isSecret(_ name: some StringProtocol) -> Bool {
        secrets.contains(String(name.lowercasedASCII.map { $0 == "_" ? "-" : $0 }))
    }

    /// The request line or the status line; `nil` if the protocol version has none.
    let start: String?
    let fields: [Field]

    /// - Parameters:
    ///   - head: in the form of HTTP/1.
    ///   - isCut: whether more lines followed.
    ///   - showsSecrets: whether nothing is masked.
    init(_ head: some Collection<UInt8>, isCut: Bool, showsSecrets: Bool = false) {
        var lines = head.split(separator: UInt8(ascii: "\n"))
            .map { String(decoding: $0.last == 0x0d ? $0.dropLast() : $0, as: UTF8.self) }
            .filter { !$0.isEmpty }
        // Of the last one it is not known what it would have been.
        if isCut { lines = lines.dropLast() }
        let first = lines.first.map { Self.isStart($0) } ?? false
        let fieldLines = lines.dropFirst(first ? 1 : 0)
        guard !showsSecrets else {
            start = first ? lines[0] : nil
            fields = fieldLines.map(Self.shownField)
            return
        }
        start = first ? Self.withoutUserinfo(start: lines[0]) : nil
        fields = fieldLines.map(Self.field)
    }

    /// A field's name contains no space.
    private static func isStart(_ line: String) -> Bool {
        line.prefix { $0 != ":" }.contains(" ") || line.hasPrefix("HTTP/")
    }

    private static func shownField(_ line: String) -> Field {
        let name = line.prefix { $0 != ":" }
        return Field(
            name: String(name), value: String(line.dropFirst(name.count + 1).trimmingSpaces),
            isMasked: false)
    }

    private static func field(_ line: String) -> Field {
        let name = line.prefix { $0 != ":" }
        let isSecret = isSecret(name) || !line.contains(":")
        let value = line.dropFirst(name.count + 1).trimmingSpaces
        return Field(
            name: String(name), value: isSecret ? mask : withoutUserinfo(value),
            isMasked: isSecret)
    }

    /// A start line with `***` in place of the userinfo in its target, which need not be a URL.
    private static func withoutUserinfo(start line: String) -> String {
        line.split(separator: " ", omittingEmptySubsequences: false).map { word in
            var shown = ""
            Array(word.utf8).withUnsafeBytes { bytes in
                Userinfo.redacting(bytes) { shown += String(decoding: $0, as: UTF8.self) }
            }
            return shown
        }.joined(separator: " ")
    }

    /// A value with `***` in place of the userinfo in each of its URLs: Referer, Location, Link and
    /// whatever else may have some.
    static func withoutUserinfo(_ value: some StringProtocol) -> String {
        String(decoding: withoutUserinfo(value.utf8), as: UTF8.self)
    }

    /// The same for bytes.
    static func withoutUserinfo(_ value: some Collection<UInt8>) -> [UInt8] {
        let value = Array(value)
        let slashes = Array("//".utf8)
        let ends = Array("/?#\\\"'<>, \t".utf8)
        var shown: [UInt8] = []
        var index = 0
        while index < value.count {
            guard value[index...].starts(with: slashes) else {
                shown.append(value[index])
                index += 1
                continue
            }
            shown += slashes
            index += slashes.count
            let authority = value[index...].prefix { !ends.contains($0) }
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
                shown += Array(mask.utf8)
                index = at
            }
        }
        return shown
    }
}

extension Substring {
    fileprivate var trimmingSpaces: Substring {
        var text = self.drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text = text.dropLast() }
        return text
    }
}
