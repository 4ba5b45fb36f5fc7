/// What the gateway proves itself with to servers that ask for it (mutual TLS): a certificate with
/// its private key, the files read when the configuration was loaded.
package struct ClientIdentity: Sendable, Equatable {
    /// The absolute path of the certificate, and of those that lead to its anchor behind it.
    package var path: String
    /// Their PEM.
    package var chain: [UInt8]
    /// The absolute path of the private key; that of the certificate where one file has both.
    package var keyPath: String
    /// Its PEM.
    package var key: [UInt8]

    /// The contents of two files, or twice of one.
    package init(path: String, chain: [UInt8], keyPath: String, key: [UInt8]) {
        self.path = path
        self.chain = chain
        self.keyPath = keyPath
        self.key = key
    }
}
