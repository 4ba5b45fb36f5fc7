/// The protocols in a request's Upgrade fields (RFC 9110 §7.8) that may be forwarded.
///
///     Upgrade  = #protocol
///     protocol = token [ "/" token ]
///
/// HTTP and TLS are not forwarded. A client that switched to them would speak HTTP past the rules
/// and logs of every intermediary; h2c also needs HTTP2-Settings, which is for one hop only; and
/// which version of HTTP and TLS a server is spoken to in is decided by its own hop. A member that
/// is not a protocol according to the grammar, and that another reader might take for one of these,
/// is not forwarded either, nor is anything after the first ``limit``.
public enum UpgradeProtocols {
    /// The maximum number of protocols that are offered to a server, and that it may switch to at
    /// once: each protocol in its answer is searched for among all that were offered.
    public static let limit = 16

    /// The protocols that may be forwarded to the next hop, in order.
    public static func forwarded(
        of fields: FieldSection, in bytes: Span<UInt8>
    ) -> [ByteRange] {
        var found: [ByteRange] = []
        bytes.withUnsafeBufferPointer { buffer in
            guard let bytes = HeadBytes(buffer, count: buffer.count) else { return }
            forEach(of: fields, in: bytes) { member in
                if isForwarded(member, bytes) { found.append(member) }
                return found.count < limit
            }
        }
        return found
    }

    /// Whether any protocol may be forwarded.
    static func areForwarded(of fields: FieldSection, in bytes: HeadBytes) -> Bool {
        var found = false
        forEach(of: fields, in: bytes) { member in
            found = isForwarded(member, bytes)
            return !found
        }
        return found
    }

    /// Passes the members of the list to `take`, until it returns false.
    private static func forEach(
        of fields: FieldSection, in bytes: HeadBytes, take: (ByteRange) -> Bool
    ) {
        for index in 0..<fields.count where fields[index].id == .upgrade {
            var start = Int(fields[index].value.start)
            let end = Int(fields[index].value.end)
            while start < end {
                let comma = bytes.first(Byte.comma, from: start, to: end) ?? end
                guard take(bytes.trimmed(from: start, to: comma)) else { return }
                start = comma &+ 1
            }
        }
    }

    private static func isForwarded(_ member: ByteRange, _ bytes: HeadBytes) -> Bool {
        let end = Int(member.end)
        let nameEnd = min(bytes.endOfToken(from: Int(member.start)), end)
        let name = ByteRange(from: Int(member.start), to: nameEnd)
        guard !name.isEmpty, !isTransport(name, bytes) else { return false }
        guard nameEnd < end else { return true }
        return bytes[nameEnd] == Byte.slash && nameEnd &+ 1 < end
            && bytes.endOfToken(from: nameEnd &+ 1) >= end
    }

    /// Whether a name denotes HTTP or TLS: as registered (`HTTP`, `TLS`), as in ALPN (`h2`, `h3`),
    /// h2c (RFC 7540 §3.2), and drafts of these (`h2c-16`). Case is ignored.
    private static func isTransport(_ name: ByteRange, _ bytes: HeadBytes) -> Bool {
        func begins(_ prefix: StaticString) -> Bool {
            let count = prefix.utf8CodeUnitCount
            guard name.count >= UInt32(count) else { return false }
            return bytes.holds(
                lowercase: prefix, at: ByteRange(start: name.start, count: UInt32(count)))
        }
        return begins("http") || begins("tls") || begins("h2") || begins("h3")
    }
}
