import COpenSSL

/// Makes OpenSSL last as long as the process.
package enum LibraryLifetime {
    /// Keeps OpenSSL intact while the process exits.
    ///
    /// OpenSSL frees its state in an exit(3) handler, no matter what other threads are still doing
    /// with it: one that frees a context at that time crashes the process. A thread that lives as
    /// long as the process, such as that of the client's shared runtime, is never joined. Therefore
    /// the handler is not installed (`OPENSSL_INIT_NO_ATEXIT`), and the memory is released with the
    /// process.
    ///
    /// Call this before anything else in OpenSSL: its first use decides. If the program itself has
    /// used OpenSSL before, its choice stands.
    package static func keepUntilExit() { _ = isChosen }

    private static let isChosen = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1
}
