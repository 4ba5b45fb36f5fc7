import CachePolicy
import ContentCoding
import HTTPCore

/// What heads say of content, as far as a stage has to know it.
package enum MessageFacts {
    /// Whether a request's content must not be changed on its way (RFC 9111, section 5.2.1.6).
    package static func noTransform(
        request: borrowing RequestHead, in bytes: Span<UInt8>
    ) -> Bool {
        CacheDirectives(request: request.fields, in: bytes).flags.contains(.noTransform)
    }

    /// Whether a response's content must not be changed on its way (RFC 9111, section 5.2.2.6).
    package static func noTransform(
        response: borrowing ResponseHead, in bytes: Span<UInt8>
    ) -> Bool {
        CacheDirectives(response: response.fields, in: bytes).flags.contains(.noTransform)
    }

    /// What Content-Type says.
    package enum MediaType: Sendable, Equatable {
        /// There is none, or nothing in it.
        case absent
        /// Type and subtype in lower case, without parameters.
        case known(String)
        /// No media type, or lines that contradict each other.
        case malformed
    }

    /// The value of Content-Type; nil where there is none. Of lines that contradict each other it
    /// is their list, which is no type: who reads another line than we do would be given what was
    /// refused, or not seen.
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

    /// The media type of content (RFC 9110, section 8.3.1).
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

    /// Nil for what is no media type.
    private static func essence(of value: Span<UInt8>) -> String? {
        guard let range = MediaTypeSyntax.read(value) else { return nil }
        return value.extracting(range).withUnsafeBytes {
            String(decoding: $0.lazy.map(ASCII.lowercased), as: UTF8.self)
        }
    }

    /// The codings of content in the order in which they were applied; nil where one is unknown.
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

    /// What the client says of codings. A field that Connection names does not count.
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
