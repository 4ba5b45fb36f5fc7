import COpenSSL

/// How a server of the TLS library reads the first bytes of a client.
enum LibraryReading: Equatable {
    case read(LibraryHello)
    /// It waits for more.
    case waits
    case refuses
}

/// A ClientHello as the TLS library reads it.
final class LibraryHello: Equatable {
    private(set) var isRead = false
    private(set) var legacyVersion: UInt32 = 0
    private(set) var random: [UInt8] = []
    private(set) var sessionID: [UInt8] = []
    /// The cipher suites, two bytes each.
    private(set) var suites: [UInt8] = []
    private(set) var compression: [UInt8] = []
    private(set) var extensions: [UInt32: [UInt8]] = [:]

    static func == (left: LibraryHello, right: LibraryHello) -> Bool { left === right }

    /// The extensions that are compared.
    static let types: [UInt32] = [0, 16, 35, 41, 42, 43]

    nonisolated(unsafe) private static let context: OpaquePointer? = {
        guard let context = SSL_CTX_new(TLS_server_method()) else { return nil }
        SSL_CTX_set_security_level(context, 0)
        _ = pinfold_SSL_CTX_set_min_proto_version(context, TLS1_VERSION)
        SSL_CTX_set_client_hello_cb(
            context,
            { ssl, _, _ in
                if let ssl, let found = pinfold_SSL_get_app_data(ssl) {
                    Unmanaged<LibraryHello>.fromOpaque(found).takeUnretainedValue().take(ssl)
                }
                // Nothing more than its reading is asked for.
                return SSL_CLIENT_HELLO_ERROR
            }, nil)
        return context
    }()

    /// - Returns: `nil` if the library has no memory.
    static func reading(_ bytes: [UInt8]) -> LibraryReading? {
        guard let ssl = LibraryConnection(context, isServer: true) else { return nil }
        let hello = LibraryHello()
        let needsMore = withExtendedLifetime(hello) {
            ssl.setOwner(Unmanaged.passUnretained(hello).toOpaque())
            return ssl.take(bytes)
        }
        return hello.isRead ? .read(hello) : needsMore ? .waits : .refuses
    }

    private func take(_ ssl: OpaquePointer) {
        guard SSL_client_hello_isv2(ssl) == 0 else { return }
        isRead = true
        legacyVersion = SSL_client_hello_get0_legacy_version(ssl)
        random = Self.bytes { SSL_client_hello_get0_random(ssl, $0) }
        sessionID = Self.bytes { SSL_client_hello_get0_session_id(ssl, $0) }
        suites = Self.bytes { SSL_client_hello_get0_ciphers(ssl, $0) }
        compression = Self.bytes { SSL_client_hello_get0_compression_methods(ssl, $0) }
        for type in Self.types {
            var start: UnsafePointer<UInt8>?
            var count = 0
            guard SSL_client_hello_get0_ext(ssl, type, &start, &count) == 1 else { continue }
            extensions[type] = Array(UnsafeBufferPointer(start: start, count: count))
        }
    }

    private static func bytes(
        _ find: (UnsafeMutablePointer<UnsafePointer<UInt8>?>) -> Int
    ) -> [UInt8] {
        var start: UnsafePointer<UInt8>?
        let count = find(&start)
        return Array(UnsafeBufferPointer(start: start, count: count))
    }
}

/// The chain of certificates that a client of the TLS library reads from a server's flight, before
/// TLS 1.3.
final class LibraryClient {
    /// In DER as the library writes them; empty if the flight was refused before.
    private(set) var chain: [[UInt8]] = []
    private let ssl: LibraryConnection
    /// What the client sends first: its ClientHello.
    let opening: [UInt8]

    nonisolated(unsafe) private static let context: OpaquePointer? = {
        guard let context = SSL_CTX_new(TLS_client_method()) else { return nil }
        SSL_CTX_set_security_level(context, 0)
        _ = pinfold_SSL_CTX_set_min_proto_version(context, TLS1_VERSION)
        _ = pinfold_SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION)
        SSL_CTX_set_cipher_list(context, "ALL")
        SSL_CTX_set_cert_verify_callback(
            context,
            { verification, _ in
                let index = SSL_get_ex_data_X509_STORE_CTX_idx()
                if let verification,
                    let ssl = X509_STORE_CTX_get_ex_data(verification, index),
                    let found = pinfold_SSL_get_app_data(OpaquePointer(ssl))
                {
                    Unmanaged<LibraryClient>.fromOpaque(found).takeUnretainedValue()
                        .take(X509_STORE_CTX_get0_untrusted(verification))
                }
                return 1
            }, nil)
        return context
    }()

    /// `nil` if the library has no memory.
    init?() {
        guard let ssl = LibraryConnection(Self.context, isServer: false) else { return nil }
        self.ssl = ssl
        guard ssl.take([]) else { return nil }
        opening = ssl.written
    }

    /// Passes the server's bytes to the client.
    func take(_ bytes: [UInt8]) {
        ssl.setOwner(Unmanaged.passUnretained(self).toOpaque())
        _ = ssl.take(bytes)
        ssl.setOwner(nil)
    }

    private func take(_ stack: OpaquePointer?) {
        chain = (0..<max(0, pinfold_sk_X509_num(stack))).compactMap { index in
            pinfold_sk_X509_value(stack, index).map(Self.encoded)
        }
    }

    /// A certificate (X509) in DER.
    static func encoded(_ certificate: OpaquePointer) -> [UInt8] {
        var start: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(certificate, &start)
        defer { CRYPTO_free(start, nil, 0) }
        return Array(UnsafeBufferPointer(start: start, count: Int(max(0, count))))
    }
}

/// A connection of the TLS library whose bytes come from memory.
private final class LibraryConnection {
    private let ssl: OpaquePointer
    private let input: OpaquePointer
    private let output: OpaquePointer

    init?(_ context: OpaquePointer?, isServer: Bool) {
        guard let context, let ssl = SSL_new(context), let input = BIO_new(BIO_s_mem()),
            let output = BIO_new(BIO_s_mem())
        else { return nil }
        (self.ssl, self.input, self.output) = (ssl, input, output)
        SSL_set_bio(ssl, input, output)
        if isServer { SSL_set_accept_state(ssl) } else { SSL_set_connect_state(ssl) }
    }

    deinit {
        SSL_free(ssl)
        ERR_clear_error()
    }

    func setOwner(_ owner: UnsafeMutableRawPointer?) {
        _ = pinfold_SSL_set_app_data(ssl, owner)
    }

    /// Continues the handshake with more bytes from the peer. Returns whether it needs more.
    func take(_ bytes: [UInt8]) -> Bool {
        ERR_clear_error()
        BIO_write(input, bytes, Int32(bytes.count))
        let result = SSL_do_handshake(ssl)
        return result != 1 && SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ
    }

    /// What it has sent.
    var written: [UInt8] {
        var start: UnsafeMutablePointer<CChar>?
        let count = pinfold_BIO_get_mem_data(output, &start)
        return Array(UnsafeRawBufferPointer(start: start, count: max(0, count)))
    }
}
