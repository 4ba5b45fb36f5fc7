import HTTPCore

/// A parsed Set-Cookie field (RFC 6265, section 5.2, with the limits of its successor,
/// draft-ietf-httpbis-rfc6265bis, section 5.6, which all browsers apply).
struct SetCookie: Equatable {
    /// The maximum size of name and value together, in bytes.
    static let maximumPairBytes = 4096
    /// The maximum size of an attribute's value, in bytes. Attributes with longer values are
    /// ignored.
    static let maximumAttributeBytes = 1024
    /// The maximum lifetime of a cookie in seconds: 400 days.
    static let maximumAgeSeconds: Int64 = 400 * 86_400

    /// The name as the server wrote it. It need not be valid UTF-8.
    var name: [UInt8]
    /// The value as the server wrote it. It need not be valid UTF-8.
    var value: [UInt8]
    /// The Domain attribute in lower case, without a leading dot; `nil` or empty if there is none.
    var domain: String?
    /// The Path attribute, or `nil` if there is none that begins with a slash.
    var path: String?
    var isSecure = false
    var isHTTPOnly = false
    var sameSite = Cookie.SameSite.unspecified
    /// The Expires attribute, in seconds since 1970.
    var expires: Int64?
    /// The Max-Age attribute, in seconds. It takes precedence over Expires.
    var maximumAge: Int64?

    init(_ bytes: [UInt8]) throws(CookieError) {
        // A tab would end a column of the file (`CookieFile`). curl rejects it as well.
        guard !bytes.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            throw .controlCharacter
        }
        var parts = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)[...]
        let (name, value) = Self.pair(parts.removeFirst())
        self.name = Array(name ?? [])
        self.value = Array(value)
        guard !self.name.isEmpty || !value.isEmpty else { throw .empty }
        guard !self.name.contains(0x09), !value.contains(0x09) else { throw .controlCharacter }
        guard self.name.count + value.count <= Self.maximumPairBytes else {
            throw .tooLong
        }
        for part in parts {
            let (name, value) = Self.pair(part)
            guard value.count <= Self.maximumAttributeBytes else { continue }
            // Without `=`, the whole text is the name.
            take(Self.text(name ?? value).lowercasedASCII, name == nil ? "" : Self.text(value))
        }
    }

    private mutating func take(_ attribute: String, _ value: String) {
        switch attribute {
        case "expires":
            if let date = CookieDate.parse(value) { expires = date }
        case "max-age":
            if let seconds = Self.seconds(value) { maximumAge = seconds }
        case "domain":
            let bare = value.utf8.first == UInt8(ascii: ".") ? String(value.dropFirst()) : value
            domain = HostName.canonical(bare)
        case "path":
            path = value.utf8.first == UInt8(ascii: "/") ? value : nil
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        case "samesite":
            sameSite = Cookie.SameSite(rawValue: value.lowercasedASCII) ?? .unspecified
        default: break
        }
    }

    /// When the cookie expires, in seconds since 1970, or `nil` for a session cookie. Max-Age takes
    /// precedence over Expires.
    func end(now: Int64) -> Int64? {
        let latest = now + Self.maximumAgeSeconds
        if let maximumAge {
            return maximumAge <= 0 ? Int64.min : min(now + min(maximumAge, latest - now), latest)
        }
        return expires.map { min($0, latest) }
    }

    /// Parses an optional `-` and digits. A number that is too large becomes the largest one.
    private static func seconds(_ text: String) -> Int64? {
        let isNegative = text.utf8.first == UInt8(ascii: "-")
        let digits = text.utf8.dropFirst(isNegative ? 1 : 0)
        guard !digits.isEmpty, digits.allSatisfy(ASCII.isDigit) else {
            return nil
        }
        return isNegative ? -1 : Int64(text) ?? .max
    }

    /// The text before and after the first `=`, without surrounding whitespace. Without `=`, the
    /// whole text is the value.
    private static func pair(
        _ part: ArraySlice<UInt8>
    ) -> (ArraySlice<UInt8>?, ArraySlice<UInt8>) {
        guard let equals = part.firstIndex(of: UInt8(ascii: "=")) else {
            return (nil, part.withoutOuterSpace)
        }
        return (part[..<equals].withoutOuterSpace, part[(equals + 1)...].withoutOuterSpace)
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes, as: UTF8.self)
    }
}

/// The reason why a cookie was not stored.
public enum CookieError: Error, Hashable, Sendable {
    /// The field contains a control character.
    case controlCharacter
    /// Both name and value are empty.
    case empty
    /// Name and value together have more than 4096 bytes.
    case tooLong
    /// The Domain attribute names a domain to which the response's host does not belong, or
    /// contains characters outside ASCII.
    case foreignDomain
    /// The Domain attribute names a public suffix, such as `co.uk`.
    case publicSuffix
    /// The response came over a clear-text connection and the cookie is Secure or would shadow a
    /// Secure cookie.
    case notSecure
    /// The caller is not HTTP, and the cookie is HttpOnly or would replace an HttpOnly cookie.
    case notHTTP
    /// The name begins with `__Secure-` or `__Host-`, but the attributes do not meet that prefix's
    /// requirements.
    case namePrefix
}
