import COpenSSL
import HTTPCore

/// Why a list of cipher suites cannot be used.
package enum CipherListError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The library does not know this name.
    case unknown(String)
    /// A TLS 1.3 name in the list for TLS 1.2.
    case ofTLS13(String)
    /// The list would change the required strength of keys and signatures.
    case securityLevel
    /// The library has no suite left to offer.
    case leavesNothing

    package var description: String {
        switch self {
        case .unknown(let name): "there is no cipher suite \"\(name)\""
        case .ofTLS13(let name): "\"\(name)\" is a TLS 1.3 cipher suite; it belongs in cipherSuites"
        case .securityLevel: "@SECLEVEL would also change the required strength of certificates"
        case .leavesNothing: "no cipher suite is left to offer"
        }
    }
}

/// Checks and applies lists of cipher suites for clients: the library itself ignores names that it
/// does not know.
package enum CipherLists {
    /// The cipher suites of TLS 1.3 (RFC 8446 §B.4).
    package static let suitesOfTLS13 = [
        "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256",
    ]

    /// Keywords that are valid but no longer stand for anything: their suites are gone.
    private static let obsolete: Set<String> = [
        "3DES", "ADH", "AECDH", "DES", "DSS", "EXP", "EXPORT", "EXPORT40", "EXPORT56", "FZA",
        "IDEA", "KRB5", "LOW", "MD5", "MEDIUM", "RC2", "RC4", "SEED", "SSLv2", "aDH", "aDSS",
        "aECDH", "aFZA", "aGOST", "aKRB5", "kDHd", "kDHr", "kECDHe", "kECDHr", "kFZA", "kGOST",
        "kKRB5", "GOST94", "GOST89MAC", "eFZA", "eNULL", "NULL", "aNULL",
    ]

    /// Checks a list for TLS 1.2, in the library's format: names and keywords separated by `:`.
    package static func check(ciphers list: String) throws(CipherListError) {
        for (index, element) in elements(list).enumerated() {
            var name = element
            if name == "@STRENGTH" || name == "DEFAULT" && index == 0 { continue }
            // The library needs no separator between a name and such a command.
            if name.contains("@SECLEVEL") { throw .securityLevel }
            if let first = name.utf8.first, "!-+".utf8.contains(first) { name.removeFirst() }
            for word in name.split(separator: "+", omittingEmptySubsequences: false) {
                if suitesOfTLS13.contains(String(word)) { throw .ofTLS13(String(word)) }
                guard word != "DEFAULT", isKnown(String(word)) else { throw .unknown(element) }
            }
        }
        var keepsLevel = true
        let hasAnySuite = hasAnySuite(TLS1_2_VERSION) { context in
            let level = SSL_CTX_get_security_level(context)
            defer { keepsLevel = SSL_CTX_get_security_level(context) == level }
            return offer(ciphers: list, in: context)
        }
        guard keepsLevel else { throw .securityLevel }
        guard hasAnySuite else { throw .leavesNothing }
    }

    /// Makes a context offer what a list names, but never a suite without encryption or without a
    /// certificate.
    ///
    /// - Returns: `false` if that leaves nothing.
    static func offer(ciphers list: String, in context: OpaquePointer) -> Bool {
        SSL_CTX_set_cipher_list(context, list + ":!eNULL:!aNULL") == 1
    }

    /// Checks a list of TLS 1.3 suites, their names separated by `:`.
    package static func check(cipherSuites list: String) throws(CipherListError) {
        for name in elements(list) where !suitesOfTLS13.contains(name) { throw .unknown(name) }
        guard hasAnySuite(TLS1_3_VERSION, { SSL_CTX_set_ciphersuites($0, list) == 1 }) else {
            throw .leavesNothing
        }
    }

    private static func elements(_ list: String) -> [String] {
        list.split { ":,; ".contains($0) }.map(String.init)
    }

    private static func isKnown(_ word: String) -> Bool {
        if obsolete.contains(word) { return true }
        // For the library any other byte ends a name, and it continues reading after it.
        let isName = word.utf8.allSatisfy {
            ASCII.isLetter($0) || ASCII.isDigit($0) || "-_.".utf8.contains($0)
        }
        guard !word.isEmpty, isName, let context = SSL_CTX_new(TLS_client_method()) else {
            return false
        }
        defer {
            SSL_CTX_free(context)
            ErrorQueue.clear()
        }
        return SSL_CTX_set_cipher_list(context, word) == 1
    }

    /// Whether a client with a list has any suite to offer for a version.
    private static func hasAnySuite(_ version: Int32, _ set: (OpaquePointer) -> Bool) -> Bool {
        defer { ErrorQueue.clear() }
        guard let context = SSL_CTX_new(TLS_client_method()) else { return false }
        defer { SSL_CTX_free(context) }
        guard set(context), pinfold_SSL_CTX_set_min_proto_version(context, version) == 1,
            pinfold_SSL_CTX_set_max_proto_version(context, version) == 1,
            let ssl = SSL_new(context)
        else { return false }
        defer { SSL_free(ssl) }
        let offered = SSL_get1_supported_ciphers(ssl)
        defer { pinfold_sk_SSL_CIPHER_free(offered) }
        return pinfold_sk_SSL_CIPHER_num(offered) > 0
    }
}
