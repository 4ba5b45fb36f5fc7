// swift-tools-version: 6.2
import PackageDescription

/// Every target is compiled in Swift 6 language mode and a warning is an error. Exclusive access to
/// class properties is checked at run time where the tests run, in debug builds; a release build
/// does without, for it is paid at every access on the hot path.
///
/// The optimizer's object outliner stays off. For a function that is compiled in two modules, Swift
/// 6.3.1 makes the function's array literals into constants of the same names in both, numbered in
/// an order of its own in each; the linker keeps one, and the other module's code then reads
/// another literal's elements (mended in swiftlang/swift#88178). It costs no instructions here.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .treatAllWarnings(as: .error),
    .unsafeFlags(
        ["-enforce-exclusivity=unchecked", "-Xllvm", "-sil-disable-pass=object-outliner"],
        .when(configuration: .release)),
]

/// For the targets whose small functions are called for every message from other targets: by itself
/// the compiler does not inline what has access level `package` across targets. A request that is
/// passed on takes 17 % fewer instructions so.
let inlined: [SwiftSetting] =
    strict + [
        .unsafeFlags(
            ["-Xllvm", "-sil-cross-module-serialize-all"], .when(configuration: .release))
    ]

let package = Package(
    name: "pinfold",
    products: [
        .executable(name: "pinfold", targets: ["pinfold"]),
        .library(name: "PinfoldClient", targets: ["PinfoldClient"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        // System libraries: a module map and a header of shims each, no logic.
        .systemLibrary(name: "CLinux"),
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(
            name: "CAres", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev"])]),
        .systemLibrary(
            name: "CPublicSuffix", pkgConfig: "libpsl", providers: [.apt(["libpsl-dev"])]),
        .systemLibrary(
            name: "CInternationalNames", pkgConfig: "libidn2",
            providers: [.apt(["libidn2-dev"])]),
        .systemLibrary(
            name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(
            name: "CBrotli", pkgConfig: "libbrotlienc", providers: [.apt(["libbrotli-dev"])]),
        // RapidJSON's headers (rapidjson-dev) are C++: its events, as C.
        .target(name: "CRapidJSON"),
        // The image libraries leave their functions by longjmp, which Swift must not see. AVIF's is
        // loaded at run time.
        .target(
            name: "CImages",
            linkerSettings: [
                .linkedLibrary("jpeg"), .linkedLibrary("png16"), .linkedLibrary("webp"),
                .linkedLibrary("webpdemux"),
            ]),
        // RE2 (libre2-dev) is C++: compiled expressions, as C.
        .target(name: "CRE2", linkerSettings: [.linkedLibrary("re2")]),

        // Pure: no system calls, no clock, no threads, no Foundation.
        .target(
            name: "Notation",
            swiftSettings: inlined + [.enableExperimentalFeature("Lifetimes")]),
        .target(name: "Addressing", dependencies: ["Notation"], swiftSettings: inlined),
        .target(name: "ClientShares", dependencies: ["Addressing"], swiftSettings: inlined),
        .target(
            name: "HTTPCore", dependencies: ["Notation", "Addressing"], swiftSettings: inlined),
        .target(
            name: "CachePolicy", dependencies: ["COpenSSL", "Notation", "HTTPCore"],
            swiftSettings: inlined),
        .target(
            name: "CertificateProfile", dependencies: ["Notation", "Addressing"],
            swiftSettings: strict),
        .target(
            name: "Pinning", dependencies: ["Notation", "Addressing", "CertificateProfile"],
            swiftSettings: strict),
        .target(
            name: "PinfoldConfiguration",
            dependencies: [
                "Notation", "HTTPCore", "Addressing", "CertificateProfile", "Pinning",
            ], swiftSettings: strict),
        .target(name: "Retries", dependencies: ["HTTPCore"], swiftSettings: strict),
        .target(name: "TLSWire", dependencies: ["Notation"], swiftSettings: strict),
        .target(
            name: "Documents", dependencies: ["CExpat", "CRapidJSON", "Notation"],
            swiftSettings: inlined),
        .target(
            name: "ContentCoding", dependencies: ["CZlib", "CBrotli", "Notation"],
            swiftSettings: strict),
        .target(
            name: "Transformation",
            dependencies: [
                "Notation", "HTTPCore", "CachePolicy", "Documents", "ContentCoding",
                "PinfoldConfiguration",
            ], swiftSettings: strict),
        .target(
            name: "JSONSchema",
            dependencies: ["CRE2", "Notation", "Addressing", "Documents", "Transformation"],
            swiftSettings: strict),
        .target(name: "Activity", swiftSettings: strict),
        .target(name: "PinfoldMetrics", dependencies: ["Notation"], swiftSettings: inlined),

        // Adapters: one kind of effect each.
        .target(name: "Clocks", dependencies: ["CLinux"], swiftSettings: inlined),
        .target(name: "DurableFiles", dependencies: ["CLinux"], swiftSettings: strict),
        .target(name: "Locking", dependencies: ["CLinux"], swiftSettings: inlined),
        .target(name: "Threads", dependencies: ["CLinux", "Locking"], swiftSettings: strict),
        .target(
            name: "EventLoop", dependencies: ["CLinux", "Addressing", "Clocks", "Locking"],
            swiftSettings: inlined),
        .target(name: "ImageCodecs", dependencies: ["CImages"], swiftSettings: strict),
        .target(
            name: "SuffixList", dependencies: ["CPublicSuffix", "CertificateProfile"],
            swiftSettings: strict),
        .target(
            name: "Serialization",
            dependencies: [
                "CLinux", "Notation", "Documents", "ImageCodecs", "Locking",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ], swiftSettings: strict),
        .target(
            name: "Cookies",
            dependencies: ["CLinux", "Notation", "Addressing", "DurableFiles", "SuffixList"],
            swiftSettings: strict),
        .target(
            name: "HTTPAuthentication", dependencies: ["COpenSSL", "Notation"],
            swiftSettings: strict),
        .target(
            name: "EventStreams", dependencies: ["COpenSSL", "CZlib", "Notation"],
            swiftSettings: strict),
        .target(
            name: "Reachability", dependencies: ["CLinux", "Addressing", "Activity"],
            swiftSettings: strict),
        .target(name: "ImageCache", dependencies: ["CLinux"], swiftSettings: strict),
        .target(
            name: "TLS",
            dependencies: [
                "CLinux", "COpenSSL", "Notation", "Addressing", "ClientShares",
                "CertificateProfile", "Pinning",
                "TLSWire", "Clocks", "Locking", "SuffixList",
            ], swiftSettings: strict),
        .target(
            name: "Imaging",
            dependencies: [
                "CLinux", "Clocks", "Locking", "Threads", "PinfoldConfiguration", "Transformation",
                "ImageCodecs",
            ], swiftSettings: strict),
        .target(
            name: "CertificateAuthority",
            dependencies: [
                "COpenSSL", "Notation", "Addressing", "ClientShares", "Pinning", "Clocks",
                "Locking", "Threads",
                "TLS",
            ], swiftSettings: strict),
        .target(
            name: "CacheStore",
            dependencies: [
                "CLinux", "CSQLite", "HTTPCore", "CachePolicy", "Clocks", "Locking", "Threads",
            ], swiftSettings: inlined),
        .target(
            name: "Resolver",
            dependencies: [
                "CLinux", "CAres", "Notation", "Addressing", "ClientShares", "Clocks", "Locking",
                "Threads",
            ],
            swiftSettings: strict),
        .target(
            name: "PinReporting",
            dependencies: [
                "CLinux", "Notation", "HTTPCore", "Addressing", "Pinning", "Clocks",
                "DurableFiles", "Locking", "Threads", "EventLoop", "TLS", "Resolver",
                "PinfoldConfiguration",
            ], swiftSettings: strict),

        // The product.
        .target(
            name: "ConfigurationFile",
            dependencies: [
                "CLinux", "Notation", "HTTPCore", "Addressing", "CertificateProfile", "Pinning",
                "Clocks", "TLS", "CertificateAuthority", "PinfoldConfiguration", "Documents",
                "JSONSchema",
                .product(name: "Yams", package: "Yams"),
            ], swiftSettings: strict),
        .target(
            name: "Engine",
            dependencies: [
                "CLinux", "Notation", "HTTPCore", "CachePolicy", "Addressing", "ClientShares",
                "CertificateProfile", "Pinning", "Documents", "ContentCoding", "Transformation",
                "JSONSchema", "Activity", "PinfoldMetrics", "Clocks", "Locking", "EventLoop", "TLS",
                "TLSWire", "CertificateAuthority", "CacheStore", "Resolver", "PinReporting",
                "PinfoldConfiguration",
                .product(name: "Logging", package: "swift-log"),
                .product(
                    name: "RawStructuredFieldValues", package: "swift-http-structured-headers"),
            ], swiftSettings: inlined),
        .target(
            name: "TrustCheck",
            dependencies: [
                "Notation", "Addressing", "CertificateProfile", "Pinning", "TLS",
                "PinfoldConfiguration", "ConfigurationFile", "Engine",
            ], swiftSettings: strict),
        .target(
            name: "PinfoldClient",
            dependencies: [
                "CLinux", "CInternationalNames", "Notation", "HTTPCore", "ContentCoding",
                "Addressing", "Pinning",
                "PinfoldConfiguration", "Documents", "Retries", "Serialization", "Activity",
                "Reachability", "ImageCache", "PinfoldMetrics", "Clocks", "DurableFiles",
                "Locking", "Threads", "EventLoop", "EventStreams",
                "HTTPAuthentication", "Cookies", "TLS", "CacheStore", "Resolver", "Engine",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ], swiftSettings: strict),
        .target(
            name: "Gateway",
            dependencies: [
                "CLinux", "Engine", "Notation", "HTTPCore", "CachePolicy", "Addressing",
                "ClientShares", "Pinning",
                "Activity", "PinfoldMetrics", "Clocks", "Locking", "Threads", "EventLoop", "TLS",
                "CertificateAuthority", "CacheStore", "Resolver", "PinReporting", "Imaging",
                "PinfoldConfiguration", "ConfigurationFile",
                "Admin", .product(name: "Logging", package: "swift-log"),
            ], swiftSettings: strict),
        .target(
            name: "Admin",
            dependencies: [
                "CLinux", "Notation", "ContentCoding", "PinfoldMetrics", "Activity", "HTTPCore",
                "Clocks",
            ],
            swiftSettings: strict),
        .target(
            name: "PinTools",
            dependencies: [
                "CLinux", "Notation", "Addressing", "Pinning", "Clocks", "Locking", "EventLoop",
                "TLS", "Resolver", "PinfoldConfiguration", "Documents",
            ], swiftSettings: strict),
        .executableTarget(
            name: "pinfold",
            dependencies: [
                "CLinux", "Notation", "Addressing", "CertificateProfile", "Pinning", "Clocks",
                "TLS", "CertificateAuthority", "PinfoldConfiguration", "ConfigurationFile",
                "TrustCheck",
                "Transformation", "JSONSchema", "Imaging", "Engine", "Gateway",
                "PinTools", "PinReporting", "PinfoldClient", "Serialization", "Retries",
                "Locking", "DurableFiles", .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ], swiftSettings: strict),

        // What the tests of several targets need.
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: strict),
        .target(
            name: "EngineTestSupport",
            dependencies: [
                "TestSupport", "Engine", "HTTPCore", "Addressing", "Pinning", "Activity",
                "EventLoop", "TLS", "PinfoldConfiguration", "ConfigurationFile",
            ], path: "Tests/EngineTestSupport", swiftSettings: strict),

        .testTarget(name: "NotationTests", dependencies: ["Notation"], swiftSettings: strict),
        .testTarget(
            name: "HTTPCoreTests",
            dependencies: ["HTTPCore", "Notation", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "CachePolicyTests", dependencies: ["CachePolicy", "HTTPCore"],
            swiftSettings: strict),
        .testTarget(
            name: "AddressingTests", dependencies: ["Addressing"], swiftSettings: strict),
        .testTarget(
            name: "ClientSharesTests", dependencies: ["ClientShares", "Addressing"],
            swiftSettings: strict),
        .testTarget(
            name: "CertificateProfileTests", dependencies: ["CertificateProfile"],
            swiftSettings: strict),
        .testTarget(
            name: "PinningTests", dependencies: ["Pinning", "Notation"], swiftSettings: strict),
        .testTarget(
            name: "ConfigurationTests",
            dependencies: ["PinfoldConfiguration", "Addressing", "Pinning", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "ActivityTests", dependencies: ["Activity"], swiftSettings: strict),
        .testTarget(
            name: "MetricsTests", dependencies: ["PinfoldMetrics"], swiftSettings: strict),
        .testTarget(
            name: "ClocksTests", dependencies: ["Clocks", "CLinux"], swiftSettings: strict),
        .testTarget(
            name: "DurableFilesTests", dependencies: ["DurableFiles", "CLinux", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "LockingTests", dependencies: ["Locking", "CLinux", "Clocks", "Threads"],
            swiftSettings: strict),
        .testTarget(
            name: "ThreadsTests", dependencies: ["Threads", "CLinux", "Locking"],
            swiftSettings: strict),
        .testTarget(
            name: "EventLoopTests",
            dependencies: [
                "EventLoop", "CLinux", "Addressing", "Clocks", "Locking", "Threads", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TLSTests",
            dependencies: [
                "TLS", "TLSWire", "CLinux", "COpenSSL", "Addressing", "CertificateProfile",
                "Pinning", "Locking", "SuffixList",
            ], swiftSettings: strict),
        .testTarget(
            name: "TrustCheckTests", dependencies: ["TrustCheck", "Notation"], swiftSettings: strict
        ),
        .testTarget(
            name: "DocumentsTests", dependencies: ["Documents"], swiftSettings: strict),
        .testTarget(
            name: "JSONSchemaTests", dependencies: ["JSONSchema", "Documents", "Transformation"],
            swiftSettings: strict),
        .target(
            name: "FuzzTargets",
            dependencies: [
                "Documents", "ContentCoding", "JSONSchema", "PinfoldConfiguration", "HTTPCore",
                "Transformation", "ImageCodecs",
            ], path: "Tests/FuzzTargets", swiftSettings: strict),
        .testTarget(
            name: "FuzzTests", dependencies: ["FuzzTargets"], swiftSettings: strict),
        .testTarget(
            name: "ContentCodingTests", dependencies: ["ContentCoding"], swiftSettings: strict),
        .testTarget(
            name: "SerializationTests",
            dependencies: [
                "Serialization", "Documents", "ImageCodecs",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ], swiftSettings: strict),
        .testTarget(name: "CookiesTests", dependencies: ["Cookies"], swiftSettings: strict),
        .testTarget(
            name: "HTTPAuthenticationTests",
            dependencies: ["HTTPAuthentication", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "EventStreamsTests", dependencies: ["EventStreams", "TestSupport"],
            swiftSettings: strict),
        .testTarget(name: "RetriesTests", dependencies: ["Retries"], swiftSettings: strict),
        .testTarget(
            name: "ReachabilityTests", dependencies: ["Reachability"], swiftSettings: strict),
        .testTarget(name: "ImageCacheTests", dependencies: ["ImageCache"], swiftSettings: strict),
        .testTarget(
            name: "TransformationTests",
            dependencies: [
                "Transformation", "HTTPCore", "Documents", "ContentCoding", "PinfoldConfiguration",
            ], swiftSettings: strict),
        .testTarget(
            name: "ImageCodecsTests", dependencies: ["ImageCodecs", "CLinux", "TestSupport"],
            exclude: ["Images"], swiftSettings: strict),
        // The process that decodes, for tests, which have no `pinfold` beside them.
        .executableTarget(
            name: "ImageTestWorker", dependencies: ["Imaging", "CLinux"],
            path: "Tests/ImageTestWorker",
            swiftSettings: strict),
        .testTarget(
            name: "ImagingTests",
            dependencies: [
                "Imaging", "ImageTestWorker", "ImageCodecs", "PinfoldConfiguration",
                "Transformation",
                "CLinux", "Locking", "Threads", "TestSupport",
            ], swiftSettings: strict),
        .testTarget(
            name: "TLSWireTests", dependencies: ["TLSWire"], swiftSettings: strict),
        .testTarget(
            name: "CertificateAuthorityTests",
            dependencies: [
                "CertificateAuthority", "COpenSSL", "CLinux", "Addressing", "Pinning", "Clocks",
                "Locking", "TLS",
            ], swiftSettings: strict),
        .testTarget(
            name: "CacheStoreTests",
            dependencies: [
                "CacheStore", "CLinux", "CSQLite", "HTTPCore", "CachePolicy", "Clocks", "Locking",
                "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ResolverTests",
            dependencies: ["Resolver", "CLinux", "Addressing", "Clocks", "Locking", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "PinReportingTests",
            dependencies: [
                "PinReporting", "PinfoldConfiguration", "Pinning", "CLinux", "Locking", "Threads",
                "Addressing", "EventLoop", "TLS", "Resolver", "TestSupport",
            ], swiftSettings: strict),
        .testTarget(
            name: "ConfigurationFileTests",
            dependencies: [
                "ConfigurationFile", "PinfoldConfiguration", "CertificateAuthority", "Addressing",
                "Pinning", "Clocks", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "EngineTests",
            dependencies: [
                "Engine", "CLinux", "HTTPCore", "CachePolicy", "CacheStore", "Addressing",
                "CertificateProfile", "Pinning", "Activity", "PinfoldMetrics", "Clocks", "Threads",
                "EventLoop", "TLS",
                "CertificateAuthority", "Resolver", "PinfoldConfiguration", "TestSupport",
                "EngineTestSupport", "Transformation",
                .product(name: "Logging", package: "swift-log"),
                .product(
                    name: "RawStructuredFieldValues", package: "swift-http-structured-headers"),
            ], swiftSettings: strict),
        .testTarget(
            name: "PinfoldClientTests",
            dependencies: [
                "Clocks", "PinfoldClient", "Engine", "Serialization", "EventStreams", "Documents",
                "CLinux",
                "Addressing",
                "EventLoop", "Locking", "Pinning", "Resolver", "Retries", "ContentCoding",
                "Cookies",
                "HTTPAuthentication",
                "TLS", "Threads", "TestSupport",
                "Reachability", "ImageCache",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ], swiftSettings: strict),
        .testTarget(
            name: "GatewayTests",
            dependencies: [
                "Gateway", "Engine", "CLinux", "COpenSSL", "HTTPCore", "Addressing", "Pinning",
                "Activity", "PinfoldMetrics", "Locking", "EventLoop", "TLS", "CertificateAuthority",
                "CacheStore", "Resolver", "PinfoldConfiguration", "Admin", "TestSupport",
                "EngineTestSupport",
                .product(name: "Logging", package: "swift-log"),
            ], swiftSettings: strict),
        .testTarget(
            name: "AdminTests",
            dependencies: [
                "Admin", "PinfoldMetrics", "Activity", "HTTPCore", "Locking", "ContentCoding",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "PinToolsTests",
            dependencies: [
                "PinTools", "Pinning", "PinfoldConfiguration", "ConfigurationFile", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(name: "ArchitectureTests", swiftSettings: strict),
    ]
)
