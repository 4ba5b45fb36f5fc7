import CachePolicy
import ContentCoding
import HTTPCore
import Transformation

extension EntityTagMapping {
    /// The gateway's own entity tags in the If-None-Match lines of a request.
    func conditions(in lines: Span<UInt8>) -> [[UInt8]] {
        var tags: [[UInt8]] = []
        var start = 0
        while start < lines.count {
            let end = lines.firstIndex(of: UInt8(ascii: "\n"), from: start)
            let line = lines.extracting(start..<end)
            if line.starts(withLowercase: "if-none-match:") {
                let value = ByteRange(from: "if-none-match:".utf8.count, to: line.count)
                var list = EntityTagList(value)
                while let range = list.next(in: line) {
                    let tag = line.extracting(range.indices).withUnsafeBytes { Array($0) }
                    if original(tag) != nil { tags.append(tag) }
                }
            }
            start = end + 1
        }
        return tags
    }

    /// The coding of what a server confirms: that of the tag in the request. The server knows only
    /// one tag for all codings of a representation; the first one in the request counts.
    func coding(of tag: [UInt8]?, among conditions: [[UInt8]]) -> ContentCoding {
        let confirmed = conditions.first { condition in
            guard let tag, let original = original(condition) else { return true }
            return Self.areSame(original, tag)
        }
        return confirmed.flatMap(coding) ?? .identity
    }
}

extension Exchange {
    /// The tag of the stored response that the request is about; `nil` if there is none.
    var storedTag: [UInt8]? {
        guard let stored = caching.stored, !stored.metadata.entityTag.isEmpty else { return nil }
        return stored.head.octets.extracting(stored.metadata.entityTag.indices)
            .withUnsafeBytes { Array($0) }
    }

    /// The tag of the stored response being validated; `nil` if there is none.
    var validatedTag: [UInt8]? { caching.validation == nil ? nil : storedTag }

    /// The same, if the route's rules did not change the response: the server knows it by this tag.
    var unchangedTag: [UInt8]? {
        guard let tag = validatedTag else { return nil }
        return rules?.ask.entityTags?.original(tag) == nil ? tag : nil
    }
}
