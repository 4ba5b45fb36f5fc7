import HTTPCore

/// The media types whose content is compressed for clients: `text/html`, `text/*` or `*/*`.
public struct CompressedTypes: Sendable, Equatable {
    /// In lower case; a range without its asterisk, so that it ends with a slash or is empty.
    private let types: [[UInt8]]

    /// - Parameter types: types and ranges of them (RFC 9110 §12.5.1), without parameters; `nil` is
    ///   returned if there are none.
    public init?(_ types: [String]) {
        guard !types.isEmpty else { return nil }
        self.types = types.map { type in
            let type = type.lowercasedASCII
            if type == "*/*" { return [] }
            return Array((type.hasSuffix("/*") ? String(type.dropLast()) : type).utf8)
        }
    }

    /// Whether content whose Content-Type has this value is of one of them. A value that is not a
    /// media type is of none.
    public func contain(contentType value: Span<UInt8>) -> Bool {
        guard let range = MediaTypeSyntax.read(value) else { return false }
        let essence = value.extracting(range)
        return types.contains { type in
            if type.isEmpty { return true }
            let isRange = type.last == UInt8(ascii: "/") && essence.count > type.count
            let compared = isRange ? essence.extracting(0..<type.count) : essence
            return compared.equals(lowercase: type.span)
        }
    }
}

extension StoredFlags {
    /// Whether the content may be sent in a coding other than the stored one.
    ///
    /// Nothing of that applies to a part, to a response without content, or where a directive
    /// forbids it (`no-transform`, RFC 9111 §5.2.2.6).
    ///
    /// - Parameters:
    ///   - facts: those of the head, by whatever directives apply.
    ///   - given: the directives of Cache-Control, whether or not others apply in their place.
    init(
        codingsOf head: Span<UInt8>, _ facts: borrowing ResponseFacts, given: CacheDirectives,
        options: borrowing PolicyOptions
    ) {
        self = []
        let isEncoded = facts.present.contains(.contentEncoding)
        let route = options.box?.options
        let compressed = route?.compressedTypes
        guard isEncoded || compressed != nil, facts.status != 204,
            facts.status != 304, !StoredHead.isOfParts(head)
        else { return }
        let directives = given.flags.union(facts.directives.flags)
        guard !directives.contains(.noTransform) else { return }
        if isEncoded {
            // Where the field does not count, nobody selects the response by it.
            let isIgnored = route?.ignoredFields.contains { $0.span.equals("accept-encoding") }
            if isIgnored ?? false || !StoredCoding.variesByCoding(head) { insert(.encoded) }
        } else if let types = compressed, facts.status == 200,
            directives.isDisjoint(with: [.isPrivate, .privateFields]),
            !facts.present.contains(.setCookie), StoredCoding.isOf(types, head)
        {
            insert(.compressible)
        }
    }
}

/// What a stored head says about the coding of its content.
public enum StoredCoding {
    /// Whether Vary names Accept-Encoding: whoever selects the response then accepts its coding as
    /// the one that it was obtained for did.
    static func variesByCoding(_ head: Span<UInt8>) -> Bool {
        var lines = StoredLines(head)
        while let line = lines.next(in: head) {
            guard case .vary = line.id else { continue }
            let value = head.extracting(line.value.indices)
            var members = ListMembers(value)
            while let member = members.next(in: value) {
                if value.extracting(member).equals(lowercase: "accept-encoding") { return true }
            }
        }
        return false
    }

    /// Whether the head has one Content-Type, which is one of these.
    static func isOf(_ types: CompressedTypes, _ head: Span<UInt8>) -> Bool {
        var lines = StoredLines(head)
        var isOf: Bool?
        while let line = lines.next(in: head) {
            guard head.holds(lowercase: "content-type", at: line.name) else { continue }
            guard isOf == nil else { return false }
            isOf = types.contain(contentType: head.extracting(line.value.indices))
        }
        return isOf ?? false
    }

    /// Whether the content of a stored response is encoded, and may be decoded for a client: what
    /// `StoredFlags.encoded` says of those that do not vary by Accept-Encoding.
    public static func mayBeDecoded(_ head: Span<UInt8>) -> Bool {
        var lines = StoredLines(head)
        var directives = CacheDirectives()
        var isEncoded = false
        while let line = lines.next(in: head) {
            switch line.id {
            case .contentEncoding: isEncoded = true
            case .cacheControl: directives.add(line.value, in: head)
            default: break
            }
        }
        return isEncoded && lines.status != 204 && lines.status != 304
            && !StoredHead.isOfParts(head) && !directives.flags.contains(.noTransform)
    }
}

extension StoredMetadata {
    /// The same for the content in another coding. A date does not tell two codings of the same
    /// content apart: it is no strong validator any more (RFC 9110 §8.8.2.2).
    /// - Parameter count: bytes of the content; `nil` if that is not known.
    public func inOtherCoding(count: UInt64?) -> StoredMetadata {
        var other = self
        other.flags.remove(.strongLastModified)
        other.bodyBytes = count
        return other
    }
}
