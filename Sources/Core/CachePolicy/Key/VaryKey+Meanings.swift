import HTTPCore

// Which values of a key are compared by their meaning is a member of the key, under a name that no
// field can have: a key says by itself which requests it matches, whatever the rules are by now.
extension VaryKey {
    /// The name, before a digit for the fields.
    private static let meaningsName: StaticString = ":meaning"

    /// Appends the member for these fields; nothing for none.
    static func append(_ meanings: FieldMeanings, to key: inout [UInt8]) {
        guard !meanings.isEmpty else { return }
        key.append(UInt8(meaningsName.utf8CodeUnitCount + 1))
        for index in 0..<meaningsName.utf8CodeUnitCount {
            key.append(meaningsName.utf8Start[index])
        }
        key.append(UInt8(ascii: "0") + meanings.rawValue)
        // It is present, as which no field of this name can be, and has no value.
        key += [1, 0, 0]
    }

    /// The fields that are compared by their meaning, if this is the name of that member.
    static func meanings(_ name: Span<UInt8>) -> FieldMeanings? {
        let length = meaningsName.utf8CodeUnitCount
        guard name.count == length + 1, name[0] == UInt8(ascii: ":"),
            name.extracting(0..<length).equals(meaningsName),
            (UInt8(ascii: "1")...UInt8(ascii: "3")).contains(name[length])
        else { return nil }
        return FieldMeanings(rawValue: name[length] - UInt8(ascii: "0"))
    }

    /// Whether it is the name of that member.
    @inline(never)
    static func isMeanings(_ name: Span<UInt8>) -> Bool { meanings(name) != nil }

    /// Whether the request has the key's values, by their meaning where the key says so.
    @inline(never)
    func matchesMeanings(_ fields: FieldSection, in head: Span<UInt8>) -> Bool {
        var meanings: FieldMeanings = []
        let key = bytes.span
        var position = 1
        while position < key.count {
            let nameEnd = position + 1 + Int(key[position])
            let name = key.extracting(position + 1..<nameEnd)
            let isPresent = key[nameEnd] == 1
            position = nameEnd + 1
            var stored = key.extracting(0..<0)
            if isPresent {
                let count = Int(key[position]) << 8 | Int(key[position + 1])
                stored = key.extracting(position + 2..<position + 2 + count)
                position += 2 + count
            }
            if let named = Self.meanings(name) {
                meanings = named
                continue
            }
            if Self.isForTheProxy(name) {
                guard !isPresent else { return false }
                continue
            }
            var value = NormalizedValue(name: name, fields: fields, in: head)
            guard value.isPresent == isPresent else { return false }
            guard isPresent else { continue }
            let isSecret = Self.isSecret(name)
            let bytes = value.bytes(
                name: name, fields: fields, in: head, by: meanings,
                upTo: isSecret ? .max : stored.count)
            let compared = isSecret ? CredentialDigest.of(bytes.span) : bytes
            guard let compared, compared.span.hasSameBytes(as: stored) else { return false }
        }
        return true
    }
}
