import PinfoldConfiguration

// The Content-Type that `pinfold transform` assumes if none is given: the type that the route's
// rules are for.

extension RequestRules {
    /// The type of the content that is translated, or `nil` if none is.
    var assumedType: String? {
        body?.from.mediaType ?? (parameters == .byMethod ? BodyFormat.form.mediaType : nil)
    }
}

extension ResponseRules {
    /// The type of the content that is translated or validated, one of the accepted types, or
    /// `nil` if no rule concerns the content.
    var assumedType: String? {
        if image != nil || validate == .image {
            return contentTypes?.first { $0.hasPrefix("image/") } ?? "image/*"
        }
        let validated: BodyFormat? =
            switch validate {
            case .json: .json
            case .xml: .xml
            case .plist: .plist
            case .image, nil: nil
            }
        guard let format = body?.from ?? validated else { return nil }
        let suffix = "+\(format.rawValue)"
        let accepted = contentTypes ?? []
        return accepted.contains(format.mediaType)
            ? format.mediaType
            : accepted.first { $0.hasSuffix(suffix) || $0.hasSuffix("/\(format.rawValue)") }
                ?? format.mediaType
    }
}

extension BodyFormat {
    /// The media type of the format.
    var mediaType: String {
        switch self {
        case .json: "application/json"
        case .form: "application/x-www-form-urlencoded"
        case .plist: "application/x-plist"
        case .xml: "application/xml"
        case .multipart: "multipart/form-data"
        }
    }

    /// The media type with the boundary parameter taken from the first line of the content.
    func mediaType(beginning content: [UInt8]) -> String {
        let line = content.prefix { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") }
        guard line.starts(with: "--".utf8), line.count > 2 else { return mediaType }
        let boundary = String(decoding: line.dropFirst(2).prefix(70), as: UTF8.self)
        return "\(mediaType); boundary=\"\(boundary)\""
    }
}
