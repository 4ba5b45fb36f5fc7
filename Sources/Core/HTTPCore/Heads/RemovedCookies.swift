extension RequestHead {
    /// Takes all cookies of a name out of the request, in place: what follows one in its field
    /// moves forward, and white space fills the line; a field that is left with nothing is not
    /// forwarded, and counts as absent. To be called once, before anything else reads the fields.
    ///
    /// - Parameters:
    ///   - name: the cookie's name, which is compared exactly (RFC 6265 §5.4).
    ///   - head: the head's bytes, from its first one on; all ranges stay within them.
    /// - Returns: the value of the first one; `nil` if there is none.
    public mutating func takeCookies(
        named name: [UInt8], in head: UnsafeMutableRawBufferPointer
    ) -> [UInt8]? {
        guard fields.contains(.cookie) else { return nil }
        var value: [UInt8]?
        var isLeft = false
        for index in 0..<fields.count where fields[index].id == .cookie {
            let range = fields[index].value
            let (kept, taken) = Self.split(Array(head[range.indices]), without: name)
            if let taken {
                value = value ?? taken
                for (offset, byte) in kept.enumerated() {
                    head[Int(range.start) + offset] = byte
                }
                for offset in (Int(range.start) + kept.count)..<Int(range.end) {
                    head[offset] = Byte.space
                }
                let end = Int(range.start) + kept.count
                fields.setValue(ByteRange(from: Int(range.start), to: end), at: index)
            }
            if taken != nil, kept.isEmpty { fields.nominate(index) } else { isLeft = true }
        }
        if !isLeft { fields.countAsAbsent(.cookie) }
        return value
    }

    /// The pairs of a Cookie field without those of a name, as they were written, and the value of
    /// the first of these.
    private static func split(
        _ field: [UInt8], without name: [UInt8]
    ) -> (kept: [UInt8], taken: [UInt8]?) {
        var taken: [UInt8]?
        let kept = field.split(separator: UInt8(ascii: ";")).filter { pair in
            let text = trimmed(pair)
            guard text.starts(with: name), text.dropFirst(name.count).first == UInt8(ascii: "=")
            else { return true }
            if taken == nil { taken = Array(text.dropFirst(name.count + 1)) }
            return false
        }
        guard taken != nil else { return (field, nil) }
        return (trimmed(Array(kept.joined(separator: [UInt8(ascii: ";")]))), taken)
    }

    private static func trimmed(_ bytes: some BidirectionalCollection<UInt8>) -> [UInt8] {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        var rest = Array(bytes.drop(while: isSpace))
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return rest
    }
}
