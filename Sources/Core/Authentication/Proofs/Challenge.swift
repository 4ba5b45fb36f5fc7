/// The value of a WWW-Authenticate or Proxy-Authenticate field (RFC 9110 §11.6.1, §11.7.1).
package struct Challenge: Sendable, Equatable {
    /// The value.
    package let value: [UInt8]

    /// - Parameters:
    ///   - realm: printable ASCII. It is always there: some clients try nothing without it.
    ///   - wasRefused: whether the client has just sent a token that is not accepted (RFC 6750
    ///     §3.1).
    /// - Returns: `nil` for a method that no field can ask for.
    package init?(_ method: AuthenticationMethod, realm: String, wasRefused: Bool = false) {
        let quoted = realm.unicodeScalars.reduce(into: "") { text, scalar in
            if scalar == "\"" || scalar == "\\" { text += "\\" }
            text.unicodeScalars.append(scalar)
        }
        switch method {
        case .certificate: return nil
        // RFC 7617 §2.1.
        case .basic: value = Array("Basic realm=\"\(quoted)\", charset=\"UTF-8\"".utf8)
        case .bearer:
            let error = wasRefused ? ", error=\"invalid_token\"" : ""
            value = Array("Bearer realm=\"\(quoted)\"\(error)".utf8)
        }
    }

    /// Whether a text can be a realm: 1 to 128 characters of printable ASCII.
    package static func isRealm(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count) && text.utf8.allSatisfy { 0x20...0x7E ~= $0 }
    }
}
