import Documents
import HTTPCore
public import HTTPTypes

/// What a serializer gives to every request that does not bring it itself.
public struct RequestDefaults: Sendable {
    /// Fields with one value each.
    public private(set) var fields: HTTPFields
    /// How requests are to be sent.
    public var properties = RequestProperties()

    /// - Parameters:
    ///   - languages: Language tags (RFC 5646) in the order of preference, for Accept-Language.
    ///   - product: What User-Agent says; characters outside of ASCII are left out.
    public init(languages: [String] = [], product: String = UserAgent.standard) {
        fields = [:]
        if let languages = AcceptLanguage.value(languages) { fields[.acceptLanguage] = languages }
        let product = UserAgent.ascii(product)
        if !product.isEmpty { fields[.userAgent] = product }
    }

    /// The default of a field. Nil takes it away.
    public subscript(name: HTTPField.Name) -> String? {
        get { fields[name] }
        set { fields[name] = newValue }
    }

    /// Authorization by name and password (RFC 7617, in UTF-8). The name must not contain a colon:
    /// false, and nothing is changed, where it does.
    @discardableResult
    public mutating func setAuthorization(user: String, password: String) -> Bool {
        guard !user.utf8.contains(UInt8(ascii: ":")) else { return false }
        fields[.authorization] = "Basic \(Base64.encode(Array("\(user):\(password)".utf8)))"
        return true
    }

    /// Authorization by a token (RFC 6750).
    public mutating func setAuthorization(bearer token: String) {
        fields[.authorization] = "Bearer \(token)"
    }

    /// Takes the default of Authorization away.
    public mutating func clearAuthorization() { fields[.authorization] = nil }

    /// Adds to a request's fields those defaults whose names it does not have.
    public func apply(to request: inout HTTPRequest) {
        for field in fields where !request.headerFields.contains(field.name) {
            request.headerFields.append(field)
        }
    }
}

/// How a request is to be sent. Nil is what the session does anyway: only what was set is applied.
public struct RequestProperties: Sendable, Equatable {
    /// What the session's cache may answer.
    public enum CachePolicy: String, Sendable, CaseIterable {
        /// What RFC 9111 says.
        case useProtocol
        /// Never answered from the cache.
        case reloadIgnoringCache
        /// Answered by what is stored, whatever its age, else sent. That the server wants to be
        /// asked each time (`no-cache`) or about what is stale (`must-revalidate`) does not count,
        /// as with `NSURLRequest`; a request with `no-store`, If-Match or If-Unmodified-Since is
        /// sent.
        case returnCacheElseLoad
        /// Answered as by ``returnCacheElseLoad``, else failed.
        case returnCacheDontLoad
    }

    /// How long nothing may move between client and server (`timeoutInterval`), not how long all of
    /// it may take.
    public var timeout: Duration?
    /// What the session's cache may answer.
    public var cachePolicy: CachePolicy?
    /// Cookies are sent and kept.
    public var handlesCookies: Bool?
    /// How soon it is sent where it has to wait for others of its session.
    public var serviceType: ServiceType?

    /// What the traffic is for, as far as a session can make a difference: packets are not marked,
    /// for a connection carries requests of all kinds after one another.
    public enum ServiceType: String, Sendable, CaseIterable {
        /// Nothing in particular.
        case standard
        /// Nobody waits for it: sent after all others of its session that have to wait.
        case background
        /// Somebody waits for it: sent before all others of its session that have to wait.
        case responsive
    }

    /// Nothing set.
    public init() {}
}

/// The field Accept-Language (RFC 9110, section 12.5.4).
public enum AcceptLanguage {
    /// The languages with weights from 1 downwards by 0.1; none below 0.5, so six at most. Nil for
    /// no languages.
    public static func value(_ languages: [String]) -> String? {
        let weighted = languages.prefix(6).enumerated().map { index, language in
            index == 0 ? "\(language);q=1" : "\(language);q=0.\(10 - index)"
        }
        return weighted.isEmpty ? nil : weighted.joined(separator: ", ")
    }
}

/// The field User-Agent (RFC 9110, section 10.1.5).
public enum UserAgent {
    /// What is said by default.
    public static let standard = "Pinfold"

    /// The text with printable ASCII only; what is left out leaves no double space.
    static func ascii(_ text: String) -> String {
        String(text.unicodeScalars.filter { (0x20...0x7E).contains($0.value) }.map(Character.init))
            .split(separator: " ").joined(separator: " ")
    }
}
