/// The fields in which a proxy describes the client's side of the connection to a server.
extension FieldIDSet {
    /// X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto and Forwarded (RFC 7239).
    public static let forwarding = FieldIDSet([
        .forwarded, .xForwardedFor, .xForwardedHost, .xForwardedProto,
    ])
}

extension RequestHead {
    private static let hyphenated: [[UInt8]] = [
        Array("x-forwarded-for".utf8), Array("x-forwarded-host".utf8),
        Array("x-forwarded-proto".utf8),
    ]
    private static let sketch = FieldNameSketch(hyphenated)

    /// Makes the fields hop-by-hop that are spelled like one of `FieldIDSet.forwarding` but with
    /// `_` for `-`: servers that pass fields as variables (CGI) could not tell them apart.
    public mutating func endForwardingAliases(in bytes: Span<UInt8>) {
        guard fields.unknownNames.intersects(Self.sketch) else { return }
        for index in 0..<fields.count where fields[index].id == .other {
            let name = bytes.extracting(fields[index].name.indices)
            if Self.hyphenated.contains(where: { Self.isAlias(name, of: $0) }) {
                fields.nominate(index)
            }
        }
    }

    /// Whether a name is `known`, which is in lower case, but for `_` in place of `-`.
    static func isAlias(_ name: Span<UInt8>, of known: [UInt8]) -> Bool {
        guard name.count == known.count else { return false }
        for index in name.indices {
            let byte = ASCII.lowercased(name[index])
            guard byte == known[index] || byte == 0x5F && known[index] == 0x2D else { return false }
        }
        return true
    }
}
