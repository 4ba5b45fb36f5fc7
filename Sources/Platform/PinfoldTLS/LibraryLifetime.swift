import COpenSSL

/// When OpenSSL ends: with the process.
package enum LibraryLifetime {
    /// Keeps OpenSSL whole while the process exits.
    ///
    /// OpenSSL frees what it has in a handler of exit(3), whatever other threads still do with it:
    /// one that frees a context at that time crashes the process. A thread that lives as long as
    /// the process, such as that of the client's shared runtime, is never joined; so there is no
    /// handler (`OPENSSL_INIT_NO_ATEXIT`), and the memory goes with the process.
    ///
    /// To be called before anything else of OpenSSL: the first use of it decides. Where a program
    /// has used OpenSSL before on its own account, its choice stands.
    package static func lastUntilExit() { _ = isChosen }

    private static let isChosen = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1
}
