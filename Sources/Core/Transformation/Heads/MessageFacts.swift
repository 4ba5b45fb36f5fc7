import CachePolicy
import ContentCoding
import HTTPCore

/// What heads state about content, as far as a stage needs to know it.
package enum MessageFacts {
    /// Whether a request's content must not be transformed (RFC 9111 §5.2.1.6).
    package static func noTransform(
        request: borrowing RequestHead, in bytes: Span<UInt8>
    ) -> Bool {
        CacheDirectives(request: request.fields, in: bytes).flags.contains(.noTransform)
    }

    /// Whether a response's content must not be transformed (RFC 9111 §5.2.2.6).
    package static func noTransform(
        response: borrowing ResponseHead, in bytes: Span<UInt8>
    ) -> Bool {
        CacheDirectives(response: response.fields, in: bytes).flags.contains(.noTransform)
    }

    /// The media type in Content-Type.
    package enum MediaType: Sendable, Equatable {
        /// The field is absent or empty.
        case absent
        /// Type and subtype in lower case, without parameters.
        case known(String)
        /// Not a media type, or contradictory lines.
        case malformed
    }

    /// The value of Content-Type; `nil` if it is absent. For contradictory lines it is their list,
    /// which is not a valid type: a recipient that uses a different line than the gateway would be
    /// given content that was refused, or not examined.
    package static func contentType(
        of fields: borrowing FieldSection, in bytes: Span<UInt8>
    ) -> String? {
        guard fields.repeated.contains(.contentType) else {
            return fields.first(.contentType).map { bytes.text(at: $0.value) }
        }
        var lines: [String] = []
        for index in 0..<fields.count where fields[index].id == .contentType {
            lines.append(bytes.text(at: fields[index].value))
        }
        let agree = mediaType(of: fields, in: bytes) != .malformed
        return agree ? lines.first { !$0.isEmpty } : lines.joined(separator: ", ")
    }

    /// The media type of content (RFC 9110 §8.3.1).
    package static func mediaType(
        of fields: borrowing FieldSection, in bytes: Span<UInt8>
    ) -> MediaType {
        guard fields.contains(.contentType) else { return .absent }
        var found = MediaType.absent
        for index in 0..<fields.count where fields[index].id == .contentType {
            let value = bytes.extracting(fields[index].value.indices)
            if value.isEmpty { continue }
            let type = essence(of: value).map(MediaType.known) ?? .malformed
            guard found == .absent || found == type else { return .malformed }
            found = type
        }
        return found
    }

    /// `nil` if it is not a media type.
    private static func essence(of value: Span<UInt8>) -> String? {
        guard let range = MediaTypeSyntax.read(value) else { return nil }
        return value.extracting(range).withUnsafeBytes {
            String(decoding: $0.lazy.map(ASCII.lowercased), as: UTF8.self)
        }
    }

    /// The codings of content in the order in which they were applied; `nil` if one is unknown.
    package static func codings(
        of fields: borrowing FieldSection, in bytes: Span<UInt8>
    ) -> [ContentCoding]? {
        guard fields.contains(.contentEncoding) else { return [] }
        var list = ContentCodingList()
        for index in 0..<fields.count where fields[index].id == .contentEncoding {
            list.add(bytes.extracting(fields[index].value.indices))
        }
        return list.codings
    }

    /// The codings that the client accepts. A field that Connection nominates does not count.
    package static func acceptedCodings(
        of request: borrowing RequestHead, in bytes: Span<UInt8>
    ) -> AcceptedCodings {
        var accepted = AcceptedCodings()
        guard request.fields.contains(.acceptEncoding) else { return accepted }
        for index in 0..<request.fields.count where request.fields[index].id == .acceptEncoding {
            guard !request.fields[index].isNominated else { continue }
            accepted.add(bytes.extracting(request.fields[index].value.indices))
        }
        return accepted
    }
}
