/// One element of DER (X.690): its tag and contents.
package struct DERElement {
    package static let boolean: UInt8 = 0x01
    package static let integer: UInt8 = 0x02
    package static let bitString: UInt8 = 0x03
    package static let octetString: UInt8 = 0x04
    package static let objectIdentifier: UInt8 = 0x06
    package static let sequence: UInt8 = 0x30
    package static let set: UInt8 = 0x31

    /// The identifier octet; tags above 30, which X.509 does not use, are refused.
    package var tag: UInt8
    package var contents: ArraySlice<UInt8>
    /// The identifier, length and contents.
    package var whole: ArraySlice<UInt8>

    /// The elements in the contents; `nil` if they are anything else.
    package var children: [DERElement]? { DERReader.elements(contents) }
}

/// Consumes elements from the front of bytes. Lengths must be encoded in the fewest possible
/// octets, as DER requires (X.690 §10.1), never indefinite, and at most four octets long.
package struct DERReader {
    package private(set) var rest: ArraySlice<UInt8>

    package init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    package var isAtEnd: Bool { rest.isEmpty }

    /// The tag of the next element; `nil` at the end.
    package var nextTag: UInt8? { rest.first }

    /// Consumes the next element; if there is none, consumes nothing and returns `nil`.
    package mutating func next() -> DERElement? {
        let start = rest.startIndex
        let count = rest.count
        guard count >= 2 else { return nil }
        let tag = rest[start]
        guard tag & 0x1F != 0x1F else { return nil }
        var position = start + 2
        var length = Int(rest[start + 1])
        if length >= 0x80 {
            let octets = length & 0x7F
            guard (1...4).contains(octets), count >= 2 + octets, rest[position] != 0 else {
                return nil
            }
            length = 0
            for _ in 0..<octets {
                length = length << 8 | Int(rest[position])
                position += 1
            }
            guard length >= 0x80 else { return nil }
        }
        guard length <= rest.endIndex - position else { return nil }
        let end = position + length
        let element = DERElement(
            tag: tag, contents: rest[position..<end], whole: rest[start..<end])
        rest = rest[end...]
        return element
    }

    /// Consumes the next element if it has this tag; otherwise consumes nothing and returns `nil`.
    package mutating func next(_ tag: UInt8) -> DERElement? {
        guard nextTag == tag else { return nil }
        return next()
    }

    /// All elements of `bytes`; `nil` if they are anything else.
    package static func elements(_ bytes: ArraySlice<UInt8>) -> [DERElement]? {
        var reader = DERReader(bytes)
        var elements: [DERElement] = []
        while !reader.isAtEnd {
            guard let element = reader.next() else { return nil }
            elements.append(element)
        }
        return elements
    }

    /// The single element in `bytes`, if it has this tag.
    package static func single(_ bytes: ArraySlice<UInt8>, _ tag: UInt8) -> DERElement? {
        var reader = DERReader(bytes)
        guard let element = reader.next(tag), reader.isAtEnd else { return nil }
        return element
    }
}
