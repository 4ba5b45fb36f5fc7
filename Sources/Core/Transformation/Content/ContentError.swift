import Documents
import PinfoldConfiguration

/// The message that content belongs to, which determines the names of its errors.
enum MessageSide {
    case request
    case response

    fileprivate var invalid: TransformationReason {
        self == .request ? .requestBodyInvalid : .responseBodyInvalid
    }

    fileprivate var untranslatable: TransformationReason {
        self == .request ? .requestBodyUntranslatable : .responseBodyUntranslatable
    }

    fileprivate var tooLarge: TransformationReason {
        self == .request ? .requestBodyTooLarge : .responseBodyTooLarge
    }
}

extension TransformationError {
    /// The maximum number of bytes of a path in an error: together with the excerpt and what the
    /// detail quotes, it does not exceed ``maximumExcerptBytes``.
    private static let maximumPathBytes = 60

    /// Converts a document's error into the message's.
    ///
    /// - Parameters:
    ///   - source: the format of the content; an error in another format is about the output.
    ///   - content: the content to which the error's position refers.
    init(
        _ error: DocumentError, _ side: MessageSide, source: DocumentFormat, content: [UInt8]
    ) {
        let isOfSource = error.format == source
        let path = Self.cut(error.path.printable, Self.maximumPathBytes)
        let detail = Self.detail(error)
        let excerpt: [UInt8] =
            if isOfSource, let location = error.location,
                location.line != nil || source == .multipart
            {
                Self.excerpt(
                    of: content, around: location.offset,
                    maximum: Self.maximumExcerptBytes - path.utf8.count - detail.quoted)
            } else {
                []
            }
        self.init(
            Self.reason(error, side, isOfSource: isOfSource), detail.text.printable,
            at: Self.location(error, path, of: source), excerpt: excerpt)
    }

    private static func reason(
        _ error: DocumentError, _ side: MessageSide, isOfSource: Bool
    ) -> TransformationReason {
        switch error.reason {
        case .tooLarge, .outputTooLarge, .tooManyValues: side.tooLarge
        case .memory: .overloaded
        case .unrepresentable where isOfSource && error.format == .multipart: .requestFileRefused
        case .unrepresentable: side.untranslatable
        default: isOfSource ? side.invalid : side.untranslatable
        }
    }

    /// The reason in words, and how many of its bytes may be from the content.
    private static func detail(_ error: DocumentError) -> (text: String, quoted: Int) {
        let name = error.format.name
        switch error.reason {
        case .malformed(let what):
            let quoted = error.format == .json ? 0 : min(what.utf8.count, 80)
            return ("it is not \(name): \(what)", quoted)
        case .encoding: return ("its encoding is not supported", 0)
        case .numberOutOfRange: return ("a number is out of the range of \(name)", 0)
        case .duplicateKey: return ("a dictionary has a duplicate name", 0)
        case .unrepresentable(let what):
            let quoted = min(what.utf8.count, 80)
            return error.format == .multipart
                ? ("\(what) cannot be translated", 0)
                : ("\(what) cannot be represented in \(name)", quoted)
        case .tooLarge, .tooDeep, .tooManyValues:
            return ("it is too large: \(error.reason.text)", 0)
        case .outputTooLarge(let maximum):
            return ("the result has more than \(maximum) bytes", 0)
        case .entity(let what):
            return ("\(what), which is never expanded", min(what.utf8.count, 80))
        case .memory: return ("there is not enough memory", 0)
        }
    }

    /// `line 3, column 14, at $.items[2].name`; for forms and multipart content the name as written
    /// there.
    private static func location(
        _ error: DocumentError, _ path: String, of source: DocumentFormat
    ) -> String? {
        var parts: [String] = []
        if error.format == source, let location = error.location {
            parts.append(location.description)
        }
        if !path.isEmpty {
            let isName = error.format == .form || error.format == .multipart
            parts.append("at " + (isName ? path : "$" + (path.hasPrefix("[") ? "" : ".") + path))
        }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    private static func cut(_ text: String, _ maximum: Int) -> String {
        guard text.utf8.count > maximum else { return text }
        let kept = Array(text.utf8.prefix(maximum - 3))
        return String(decoding: whole(kept[...], in: Array(text.utf8)), as: UTF8.self) + "…"
    }

    /// At most this many bytes of a text around a position, in whole UTF-8 characters. Bytes that
    /// are not UTF-8 become `?`.
    static func excerpt(of content: [UInt8], around offset: Int, maximum: Int) -> [UInt8] {
        guard maximum > 0 else { return [] }
        var start = max(0, min(offset, content.count) - maximum / 2)
        let end = min(content.count, start + maximum)
        start = max(0, end - maximum)
        let window = whole(content[start..<end], in: content)
        guard String(validating: window, as: UTF8.self) == nil else { return Array(window) }
        return window.map { $0 < 0x80 ? $0 : UInt8(ascii: "?") }
    }

    /// A part of a text without the characters that are truncated at its ends.
    private static func whole(
        _ part: ArraySlice<UInt8>, in text: [UInt8]
    ) -> ArraySlice<UInt8> {
        let isFurther = { (index: Int) in text[index] & 0xC0 == 0x80 }
        var (start, end) = (part.startIndex, part.endIndex)
        if start > 0 {
            while start < end, start < part.startIndex + 3, isFurther(start) { start += 1 }
        }
        if end < text.count, isFurther(end) {
            while end > start, isFurther(end) { end -= 1 }
        }
        return text[start..<end]
    }
}

extension DocumentFormat {
    /// The format's name in errors.
    var name: String {
        switch self {
        case .json: "JSON"
        case .xml: "XML"
        case .plist: "a property list"
        case .form: "a form"
        case .multipart: "multipart content"
        }
    }
}

extension BodyFormat {
    var document: DocumentFormat {
        switch self {
        case .json: .json
        case .form: .form
        case .plist: .plist
        case .xml: .xml
        case .multipart: .multipart
        }
    }
}

extension String {
    /// Replaces each control character by U+FFFD: names come from whoever wrote the content, and
    /// the result is written to logs and terminals.
    fileprivate var printable: String {
        guard unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            return self
        }
        return String(
            String.UnicodeScalarView(
                unicodeScalars.map {
                    $0.properties.generalCategory == .control ? "\u{FFFD}" : $0
                }))
    }
}

extension TransformationError {
    /// The error for content with an invalid type that could be read as the format that is
    /// translated; `nil` if it is clear what the content is, or that it is not this format.
    init?(_ reason: TransformationReason, unclear type: ContentType?, _ from: DocumentFormat) {
        guard let type, type.essence == ContentType.malformed, type.mayBe(from.isFormat) else {
            return nil
        }
        self.init(
            reason,
            "its Content-Type is malformed, and could be read as \(from.rawValue), "
                + "which is translated")
    }
}
