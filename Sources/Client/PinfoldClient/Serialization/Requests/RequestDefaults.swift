import Documents
import HTTPCore
public import HTTPTypes

/// Fields and properties that a serializer gives to requests that do not have them.
public struct RequestDefaults: Sendable {
    /// The fields, with one value each.
    public private(set) var fields: HTTPFields
    /// How requests are sent.
    public var properties = RequestProperties()

    /// Creates defaults.
    ///
    /// - Parameters:
    ///   - languages: Language tags (RFC 5646) in order of preference, for Accept-Language.
    ///   - product: The value of User-Agent. Characters outside ASCII are removed.
    public init(languages: [String] = [], product: String = UserAgent.standard) {
        fields = [:]
        if let languages = AcceptLanguage.value(languages) { fields[.acceptLanguage] = languages }
        let product = UserAgent.ascii(product)
        if !product.isEmpty { fields[.userAgent] = product }
    }

    /// The default value of a field. Set it to `nil` to remove the default.
    public subscript(name: HTTPField.Name) -> String? {
        get { fields[name] }
        set { fields[name] = newValue }
    }

    /// Sets the default of Authorization to a user name and password (RFC 7617, in UTF-8). Returns
    /// `false` and changes nothing if the user name contains a colon.
    @discardableResult
    public mutating func setAuthorization(user: String, password: String) -> Bool {
        guard !user.utf8.contains(UInt8(ascii: ":")) else { return false }
        fields[.authorization] = "Basic \(Base64.encode(Array("\(user):\(password)".utf8)))"
        return true
    }

    /// Sets the default of Authorization to a bearer token (RFC 6750).
    public mutating func setAuthorization(bearer token: String) {
        fields[.authorization] = "Bearer \(token)"
    }

    /// Removes the default of Authorization.
    public mutating func clearAuthorization() { fields[.authorization] = nil }

    /// Adds to a request those fields that it does not have.
    public func apply(to request: inout HTTPRequest) {
        for field in fields where !request.headerFields.contains(field.name) {
            request.headerFields.append(field)
        }
    }
}

/// How a request is sent. For properties that are `nil`, the session's settings apply.
public struct RequestProperties: Sendable, Equatable {
    /// How the session's cache may be used.
    public enum CachePolicy: String, Sendable, CaseIterable {
        /// As RFC 9111 specifies.
        case useProtocol
        /// Do not use a stored response.
        case reloadIgnoringCache
        /// Use a stored response, whatever its age, or else send the request. As with
        /// `NSURLRequest`, `no-cache` and `must-revalidate` in the stored response are ignored. A
        /// request with `no-store`, If-Match or If-Unmodified-Since is always sent.
        case returnCacheElseLoad
        /// Use a stored response as ``returnCacheElseLoad`` does, or else fail.
        case returnCacheDontLoad
    }

    /// The idle timeout (`timeoutInterval`): how long the connection may be without any progress,
    /// not how long the whole request may take.
    public var timeout: Duration?
    /// How the session's cache may be used.
    public var cachePolicy: CachePolicy?
    /// Whether cookies are sent and stored.
    public var handlesCookies: Bool?
    /// The request's priority if it has to wait for others of its session.
    public var serviceType: ServiceType?

    /// The type of traffic. It affects the order of a session's requests only: packets are not
    /// marked, because a connection carries requests of all types one after another.
    public enum ServiceType: String, Sendable, CaseIterable {
        /// Ordinary traffic.
        case standard
        /// Traffic that nobody is waiting for. It is sent after all other waiting requests of its
        /// session.
        case background
        /// Traffic that somebody is waiting for. It is sent before all other waiting requests of
        /// its session.
        case responsive
    }

    /// Creates properties without any values.
    public init() {}
}

/// The Accept-Language field (RFC 9110, section 12.5.4).
public enum AcceptLanguage {
    /// Returns the languages with weights that decrease from 1 by 0.1 down to 0.5, so six at most.
    /// Returns `nil` if there are no languages.
    public static func value(_ languages: [String]) -> String? {
        let weighted = languages.prefix(6).enumerated().map { index, language in
            index == 0 ? "\(language);q=1" : "\(language);q=0.\(10 - index)"
        }
        return weighted.isEmpty ? nil : weighted.joined(separator: ", ")
    }
}

/// The User-Agent field (RFC 9110, section 10.1.5).
public enum UserAgent {
    /// The default value.
    public static let standard = "Pinfold"

    /// The text reduced to printable ASCII. Removed characters leave no double spaces.
    static func ascii(_ text: String) -> String {
        String(text.unicodeScalars.filter { (0x20...0x7E).contains($0.value) }.map(Character.init))
            .split(separator: " ").joined(separator: " ")
    }
}
