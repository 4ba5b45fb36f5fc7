import HTTPCore

/// A Set-Cookie field taken apart (RFC 6265, section 5.2, with the limits of its successor,
/// draft-ietf-httpbis-rfc6265bis, section 5.6, that all browsers keep).
struct SetCookie: Equatable {
    /// Bytes of a name and its value.
    static let maximumPairBytes = 4096
    /// Bytes of an attribute's value; a longer attribute is left out.
    static let maximumAttributeBytes = 1024
    /// How long a cookie may last, in seconds: 400 days.
    static let maximumAgeSeconds: Int64 = 400 * 86_400

    /// As the server wrote it: it need not be UTF-8.
    var name: [UInt8]
    /// As the server wrote it: it need not be UTF-8.
    var value: [UInt8]
    /// Without the dot in front, in lower case; nil or empty: none.
    var domain: String?
    /// Nil: none that begins with a slash.
    var path: String?
    var isSecure = false
    var isHTTPOnly = false
    var sameSite = Cookie.SameSite.unspecified
    /// Seconds since 1970; of Expires.
    var expires: Int64?
    /// Seconds; of Max-Age, which goes before Expires.
    var maximumAge: Int64?

    init(_ bytes: [UInt8]) throws(CookieRefusal) {
        // A tab would end a column of the file (``CookieFile``); curl refuses it, too.
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
            // Without `=` it is all name.
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

    /// When it ends, by Max-Age before Expires; nil: with the session.
    func end(now: Int64) -> Int64? {
        let latest = now + Self.maximumAgeSeconds
        if let maximumAge {
            return maximumAge <= 0 ? Int64.min : min(now + min(maximumAge, latest - now), latest)
        }
        return expires.map { min($0, latest) }
    }

    /// `-` and digits; what is too large for a number is the largest.
    private static func seconds(_ text: String) -> Int64? {
        let isNegative = text.utf8.first == UInt8(ascii: "-")
        let digits = text.utf8.dropFirst(isNegative ? 1 : 0)
        guard !digits.isEmpty, digits.allSatisfy(ASCII.isDigit) else {
            return nil
        }
        return isNegative ? -1 : Int64(text) ?? .max
    }

    /// What stands before and behind the first `=`, without the space around; all is value where
    /// there is none.
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

/// Why a cookie was not stored.
public enum CookieRefusal: Error, Hashable, Sendable {
    /// A control character is in the field.
    case controlCharacter
    /// Neither a name nor a value.
    case empty
    /// Name and value have more than 4096 bytes.
    case tooLong
    /// The Domain attribute names a host that the response does not come from, or is not in ASCII.
    case foreignDomain
    /// The Domain attribute names what nobody owns alone, such as `co.uk`.
    case publicSuffix
    /// Secure, from a response in clear text; or it would hide one that is Secure.
    case notSecure
    /// HttpOnly, or in place of one that is, from a caller that is not HTTP.
    case notHTTP
    /// The name begins with `__Secure-` or `__Host-`, but the attributes are not as that asks.
    case namePrefix
}
