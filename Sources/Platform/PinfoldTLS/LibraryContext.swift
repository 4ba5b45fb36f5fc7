import COpenSSL

/// What the library's client and server contexts have in common.
enum LibraryContext {
    /// The maximum number of bytes that one receive takes from the socket: two full records.
    static let receiveBytes = 32 * 1024
    /// The longest protocol name (RFC 7301 §3.1).
    private static let protocolNameBytes = 255

    /// A context for a method, which is freed again if `configure` fails.
    static func make(
        _ method: OpaquePointer?,
        configure: (OpaquePointer) throws(TLSContextError) -> Void
    ) throws(TLSContextError) -> OpaquePointer {
        guard let context = SSL_CTX_new(method) else { throw .library(ErrorQueue.drain()) }
        do throws(TLSContextError) {
            try configure(context)
        } catch {
            SSL_CTX_free(context)
            throw error
        }
        return context
    }

    /// Sets the version, and how connections use the library.
    static func configure(
        _ context: OpaquePointer, minimumVersion: TLSVersion
    ) throws(TLSContextError) {
        guard pinfold_SSL_CTX_set_min_proto_version(context, minimumVersion.number) == 1
        else { throw .library(ErrorQueue.drain()) }
        if minimumVersion.isObsolete { try allowObsoleteVersions(context) }
        SSL_CTX_set_options(
            context, pinfold_SSL_OP_NO_COMPRESSION | pinfold_SSL_OP_NO_RENEGOTIATION)
        // Partial writes and a moving buffer, because callers write from ring buffers. Released
        // buffers, so that an idle connection holds none.
        let modes =
            SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
            | SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY
        _ = pinfold_SSL_CTX_set_mode(context, Int(modes))
        pinfold_SSL_CTX_set_read_ahead(context, 1)
        SSL_CTX_set_default_read_buffer_len(context, receiveBytes)
        TLSConnection.observe(context)
    }

    private static func allowObsoleteVersions(
        _ context: OpaquePointer
    ) throws(TLSContextError) {
        SSL_CTX_set_security_level(context, 0)
        // Excludes what the security level would allow: it governs signatures, not encryption.
        guard SSL_CTX_set_cipher_list(context, "HIGH:!aNULL:!eNULL:!PSK:!SRP:!kRSAPSK") == 1
        else { throw .library(ErrorQueue.drain()) }
    }

    /// A list of protocols as encoded for ALPN: each name preceded by its length.
    static func wireForm(_ protocols: [String]) throws(TLSContextError) -> [UInt8] {
        var wire: [UInt8] = []
        for name in protocols {
            guard (1...protocolNameBytes).contains(name.utf8.count) else {
                throw .library("not a valid application protocol: \(name)")
            }
            wire.append(UInt8(name.utf8.count))
            wire.append(contentsOf: name.utf8)
        }
        return wire
    }
}
