/// What the Upgrade fields of a request name (RFC 9110 §7.8), as far as it may go on.
///
///     Upgrade  = #protocol
///     protocol = token [ "/" token ]
///
/// A protocol that is HTTP or TLS ends here. Whoever switches to it would speak HTTP past the rules
/// and logs of everybody in between; h2c needs HTTP2-Settings besides, which is for one hop only;
/// and which version of HTTP and TLS a server is spoken to in is for its own hop to settle. What is
/// no protocol by the grammar, which another reader may take for one of these, ends here, too, and
/// so do all behind the first ``limit``.
package enum UpgradeProtocols {
    /// Protocols that are offered to a server at most, and that it may switch to at once: each that
    /// it names is looked for among all that were offered.
    package static let limit = 16

    /// The protocols that may go on to the next hop, in their order.
    package static func forwarded(
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

    /// Whether any protocol may go on.
    static func areForwarded(of fields: FieldSection, in bytes: HeadBytes) -> Bool {
        var found = false
        forEach(of: fields, in: bytes) { member in
            found = isForwarded(member, bytes)
            return !found
        }
        return found
    }

    /// Hands over one member of the list after another, until `take` returns false.
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

    /// Whether a name is one of HTTP or TLS: as registered (`HTTP`, `TLS`), as in ALPN (`h2`,
    /// `h3`), h2c (RFC 7540 §3.2), and drafts of these (`h2c-16`). Letter case does not count.
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
