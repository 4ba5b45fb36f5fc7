import HTTPCore

/// The nominated names alone: from them a request's own key is computed, so that its variant is
/// found by comparing two keys, without reading anything that is stored.
extension VaryKey {
    /// The nominated names: for each its length (1 byte) and its bytes in lower case, in
    /// alphabetical order. Empty without Vary.
    public var names: [UInt8] {
        guard !bytes.isEmpty else { return [] }
        var names: [UInt8] = []
        var position = 1
        while position < bytes.count {
            let nameEnd = position + 1 + Int(bytes[position])
            names += bytes[position..<nameEnd]
            let isPresent = bytes[nameEnd] == 1
            position = nameEnd + 1
            guard isPresent else { continue }
            position += 2 + (Int(bytes[position]) << 8 | Int(bytes[position + 1]))
        }
        return names
    }

    /// The key that a response nominating `names` (in the form of `VaryKey.names`) would have if it
    /// answered this request. `nil` if a value is too long: nothing is stored for it.
    public init?(names: [UInt8], for request: borrowing RequestHead, in head: Span<UInt8>) {
        guard !names.isEmpty else {
            self = .none
            return
        }
        var key: [UInt8] = [Self.version]
        key.reserveCapacity(64)
        var position = 0
        var meanings: FieldMeanings = []
        while position < names.count {
            let nameEnd = position + 1 + Int(names[position])
            guard nameEnd <= names.count else { return nil }
            let name = Array(names[position + 1..<nameEnd])
            if let named = Self.meanings(name.span) {
                meanings = named
                Self.append(named, to: &key)
                position = nameEnd
                continue
            }
            key += names[position..<nameEnd]
            do throws(NotStoredReason) {
                try Self.append(valueOf: name, for: request, in: head, by: meanings, to: &key)
            } catch {
                return nil
            }
            position = nameEnd
        }
        self = VaryKey(unchecked: key)
    }

    /// Whether only the digest of a field's value is kept (``CredentialDigest``).
    static func isSecret(_ name: Span<UInt8>) -> Bool { name.equals("authorization") }

    /// Whether a field is for this gateway alone: it is not sent on, so that no response depends on
    /// it, and counts as absent whoever nominates it (RFC 9110 §11.7.2).
    static func isForTheProxy(_ name: Span<UInt8>) -> Bool { name.equals("proxy-authorization") }

    /// Whether a field that the request has is nominated.
    public func hasValue(of field: StaticString) -> Bool {
        var position = 1
        while position < bytes.count {
            let nameEnd = position + 1 + Int(bytes[position])
            let isPresent = bytes[nameEnd] == 1
            if isPresent, bytes.span.extracting(position + 1..<nameEnd).equals(field) {
                return true
            }
            position = nameEnd + 1
            guard isPresent else { continue }
            position += 2 + (Int(bytes[position]) << 8 | Int(bytes[position + 1]))
        }
        return false
    }

    /// Whether what it selects is the same for everyone: it nominates only fields that say how
    /// content is wanted, or of which site, and none that might tell who asks.
    public var isForEveryone: Bool {
        var position = 0
        let names = names
        while position < names.count {
            let end = position + 1 + Int(names[position])
            guard
                Self.impersonal.contains(names[(position + 1)..<end])
                    || Self.isMeanings(names.span.extracting((position + 1)..<end))
            else { return false }
            position = end
        }
        return true
    }

    private static let impersonal = Set(
        [
            "accept", "accept-encoding", "accept-language", "user-agent", "host", "origin",
            "x-forwarded-host", "x-forwarded-proto",
        ].map { ArraySlice($0.utf8) })

    /// The key without a nominated field, in lower case: what matches it matches this key but for
    /// the value of that field. `nil` if the field is not nominated.
    public func ignoring(_ field: StaticString) -> VaryKey? {
        guard let place = place(of: field) else { return nil }
        guard bytes.count > 1 + place.count else { return VaryKey.none }
        return VaryKey(unchecked: Array(bytes[..<place.lowerBound] + bytes[place.upperBound...]))
    }

    /// Where a nominated field is: its name, presence and value; `nil` if it is not nominated.
    private func place(of field: StaticString) -> Range<Int>? {
        var position = 1
        while position < bytes.count {
            let nameEnd = position + 1 + Int(bytes[position])
            var end = nameEnd + 1
            if bytes[nameEnd] == 1 { end += 2 + (Int(bytes[end]) << 8 | Int(bytes[end + 1])) }
            if bytes.span.extracting(position + 1..<nameEnd).equals(field) {
                return position..<end
            }
            position = end
        }
        return nil
    }

    /// The key that a request would have if it differed in Accept-Encoding alone; `nil` if the
    /// field is not nominated.
    /// - Parameter index: of the value in ``commonCodings``.
    public func ofOtherCoding(_ index: Int) -> VaryKey? {
        guard let place = place(of: "accept-encoding") else { return nil }
        let start = place.lowerBound + 1 + Int(bytes[place.lowerBound])
        let value = Self.commonCodings[index]
        let member = [1, UInt8(value.count >> 8), UInt8(value.count & 0xFF)] + value
        return VaryKey(unchecked: bytes[..<start] + member + bytes[place.upperBound...])
    }

    /// Values of Accept-Encoding that clients commonly send, in their canonical order.
    public static let commonCodings = [
        "gzip", "gzip,deflate", "gzip,deflate,br", "gzip,deflate,br,zstd", "gzip,br", "br",
        "zstd", "deflate", "*",
    ].map { Array($0.utf8) }

    /// Appends the presence, length and value of a request field to a key that ends with its name.
    /// - Parameter meanings: the fields that are compared by their meaning.
    static func append(
        valueOf name: [UInt8], for request: borrowing RequestHead, in head: Span<UInt8>,
        by meanings: FieldMeanings, to key: inout [UInt8]
    ) throws(NotStoredReason) {
        if isForTheProxy(name.span) { return key.append(0) }
        var value = NormalizedValue(name: name.span, fields: request.fields, in: head)
        key.append(value.isPresent ? 1 : 0)
        guard value.isPresent else { return }
        let start = key.count
        key.append(0)
        key.append(0)
        key += value.bytes(name: name.span, fields: request.fields, in: head, by: meanings)
        if isSecret(name.span) {
            guard let digest = CredentialDigest.of(key.span.extracting((start + 2)...)) else {
                throw .varyValues
            }
            key.removeSubrange((start + 2)...)
            key += digest
        }
        let count = key.count - start - 2
        guard count <= Int(UInt16.max) else { throw .varyValues }
        key[start] = UInt8(count >> 8)
        key[start + 1] = UInt8(count & 0xFF)
    }
}
