/// What each target may import besides the standard library and `Synchronization`. Arrows point
/// down only: a line may name targets that stand above it, and libraries.
let allowedImports: [(target: String, imports: Set<String>)] = [
    // System libraries: a module map and a header of shims each, no Swift.
    ("CLinux", []),
    ("COpenSSL", []),
    ("CSQLite", []),
    ("CAres", []),
    ("CPublicSuffix", []),
    ("CInternationalNames", []),
    ("CExpat", []),
    ("CZlib", []),
    ("CBrotli", []),
    // C++ behind a header in C, no Swift.
    ("CRapidJSON", []),
    ("CRE2", []),
    // C over the image libraries, no Swift.
    ("CImages", []),
    // Pure: no system calls, no clock, no threads.
    ("Notation", []),
    ("Addressing", ["Notation"]),
    ("ClientShares", ["Addressing"]),
    ("HTTPCore", ["Notation", "Addressing"]),
    ("CachePolicy", ["COpenSSL", "Notation", "HTTPCore"]),
    ("CertificateProfile", ["Notation", "Addressing"]),
    ("Pinning", ["Notation", "Addressing", "CertificateProfile"]),
    (
        "PinfoldConfiguration",
        ["Notation", "HTTPCore", "Addressing", "CertificateProfile", "Pinning"]
    ),
    ("Retries", ["HTTPCore"]),
    ("TLSWire", ["Notation"]),
    ("Documents", ["CExpat", "CRapidJSON", "Notation"]),
    ("ContentCoding", ["CZlib", "CBrotli", "Notation"]),
    (
        "Transformation",
        [
            "Notation", "HTTPCore", "CachePolicy", "Documents", "ContentCoding",
            "PinfoldConfiguration",
        ]
    ),
    ("JSONSchema", ["CRE2", "Notation", "Addressing", "Documents", "Transformation"]),
    ("Activity", []),
    ("PinfoldMetrics", ["Notation"]),
    // Adapters: one kind of effect each.
    ("Clocks", ["CLinux"]),
    ("DurableFiles", ["CLinux"]),
    ("Locking", ["CLinux"]),
    ("Threads", ["CLinux", "Locking"]),
    ("EventLoop", ["CLinux", "Addressing", "Clocks", "Locking"]),
    ("ImageCodecs", ["CImages"]),
    ("SuffixList", ["CPublicSuffix", "CertificateProfile"]),
    (
        "Serialization",
        [
            "CLinux", "Notation", "Documents", "ImageCodecs", "Locking", "FoundationEssentials",
            "HTTPTypes",
        ]
    ),
    ("Cookies", ["CLinux", "Notation", "Addressing", "DurableFiles", "SuffixList"]),
    ("HTTPAuthentication", ["COpenSSL", "Notation"]),
    ("EventStreams", ["COpenSSL", "CZlib", "Notation"]),
    ("Reachability", ["CLinux", "Addressing", "Activity"]),
    ("ImageCache", ["CLinux"]),
    (
        "TLS",
        [
            "CLinux", "COpenSSL", "Notation", "Addressing", "ClientShares", "CertificateProfile",
            "Pinning",
            "TLSWire", "Clocks", "Locking", "SuffixList",
        ]
    ),
    (
        "Imaging",
        [
            "CLinux", "Clocks", "Locking", "Threads", "PinfoldConfiguration", "Transformation",
            "ImageCodecs",
        ]
    ),
    (
        "CertificateAuthority",
        [
            "COpenSSL", "Notation", "Addressing", "ClientShares", "Pinning", "Clocks", "Locking",
            "Threads", "TLS",
        ]
    ),
    (
        "CacheStore",
        ["CLinux", "CSQLite", "HTTPCore", "CachePolicy", "Clocks", "Locking", "Threads"]
    ),
    (
        "Resolver",
        [
            "CLinux", "CAres", "Notation", "Addressing", "ClientShares", "Clocks", "Locking",
            "Threads",
        ]
    ),
    (
        "PinReporting",
        [
            "CLinux", "Notation", "HTTPCore", "Addressing", "Pinning", "Clocks", "DurableFiles",
            "Locking", "Threads", "EventLoop", "TLS", "Resolver", "PinfoldConfiguration",
        ]
    ),
    // The product.
    (
        "Admin",
        [
            "CLinux", "Notation", "ContentCoding", "PinfoldMetrics", "Activity", "HTTPCore",
            "Clocks",
        ]
    ),
    (
        "ConfigurationFile",
        [
            "CLinux", "Notation", "HTTPCore", "Addressing", "CertificateProfile", "Pinning",
            "Clocks", "TLS", "CertificateAuthority", "PinfoldConfiguration", "Documents",
            "JSONSchema",
            "Yams",
        ]
    ),
    (
        "Engine",
        [
            "CLinux", "Notation", "HTTPCore", "CachePolicy", "Addressing", "ClientShares",
            "CertificateProfile",
            "Pinning", "ContentCoding", "Documents", "Transformation", "JSONSchema", "Activity",
            "PinfoldMetrics",
            "Clocks",
            "Locking", "EventLoop", "TLS", "TLSWire", "CertificateAuthority", "CacheStore",
            "Resolver", "PinReporting",
            "PinfoldConfiguration",
            "Logging",
            "RawStructuredFieldValues",
        ]
    ),
    (
        "TrustCheck",
        [
            "Notation", "Addressing", "CertificateProfile", "Pinning", "TLS",
            "PinfoldConfiguration", "ConfigurationFile", "Engine",
        ]
    ),
    (
        "PinfoldClient",
        [
            "CLinux", "CInternationalNames", "Notation", "HTTPCore", "ContentCoding", "Addressing",
            "Pinning",
            "PinfoldConfiguration",
            "Documents", "Retries", "Serialization", "Activity", "Reachability", "ImageCache",
            "PinfoldMetrics", "Clocks", "DurableFiles", "Locking", "Threads", "EventLoop",
            "EventStreams",
            "HTTPAuthentication", "Cookies", "TLS", "CacheStore", "Resolver", "Engine",
            "HTTPTypes", "Logging",
        ]
    ),
    (
        "Gateway",
        [
            "CLinux", "Engine", "Notation", "HTTPCore", "CachePolicy", "Addressing", "ClientShares",
            "Pinning",
            "Activity",
            "PinfoldMetrics", "Clocks", "Locking", "Threads", "EventLoop", "TLS",
            "CertificateAuthority",
            "CacheStore", "Resolver", "PinReporting", "Imaging",
            "PinfoldConfiguration", "ConfigurationFile", "Admin", "Logging",
        ]
    ),
    (
        "PinTools",
        [
            "CLinux", "Notation", "Addressing", "Pinning", "Clocks", "Locking", "EventLoop", "TLS",
            "Resolver", "PinfoldConfiguration", "Documents",
        ]
    ),
    (
        "pinfold",
        [
            "CLinux", "Notation", "Addressing", "CertificateProfile", "Pinning", "Clocks", "TLS",
            "CertificateAuthority", "PinfoldConfiguration", "ConfigurationFile", "TrustCheck",
            "Engine",
            "Transformation", "JSONSchema", "Imaging", "Gateway", "PinTools",
            "PinReporting", "PinfoldClient", "Serialization", "Retries", "Locking",
            "DurableFiles",
            "HTTPTypes", "ArgumentParser",
        ]
    ),
]

/// Of the imports, what no package provides: the toolchain does.
let modulesOfToolchain: Set<String> = ["FoundationEssentials"]
