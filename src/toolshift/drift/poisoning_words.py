"""Words by which texts give orders to a model, by meaning and language.

A single one of them says nothing: a tool for passwords speaks of passwords. `poisoning.py` looks
for meanings that stand together in one sentence of one language. A further language is one more
entry of `WORDS` with the same meanings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

MEANINGS = (
    "ignore",
    "rules",
    "never",
    "tell",
    "user",
    "secret",
    "talk",
    "whole",
    "hand over",
    "others",
    "before",
    "conceal",
)
"""What the words of each language mean, in the order in which `WORDS` has them.

"talk" is the conversation, "others" are other tools, "hand over" is to read, send or pass on.
"""

WORDS: Mapping[str, tuple[str, ...]] = {
    "en": (
        "ignor|disregard|forget|overrid|supersede|outrank|bypass|overrul|no longer appl"
        "|no longer valid|no longer count|are void$|is void$|obsolete|set aside"
        "|pay no attention|take precedence|takes precedence",
        "instruction|prompt|rule|guideline|directive|safety|were told|been told|polic(?:y"
        "|ies)$|request of the user",
        "not$|don't$|never$|without$|avoid|no need|no reason|nobody$|no one$|must not|cannot$"
        "|quiet",
        "tell|told$|mention|informs?$|informed|informing|notif|reveal|disclos|alert|say$"
        "|say so|bring it up|speak|announc|show this|warn|asking$|confirm",
        "your (?:final )?(?:answer|reply|response|output)|you write|you say"
        "|users?$|human|persons?$|people$|operator|anyone|nobody$|no one$|say so|bring it up"
        "|about it|quiet|it happened|this step",
        "password|passphrase|credential|api keys?$|api-keys?$|access tokens?$|private keys?$"
        "|ssh keys?$|session token|secret keys?$|secrets$|environment variable"
        "|system prompt|hidden prompt|private notes|private messages|keychain|wallet"
        "|session cookie",
        "conversation|discussion|chat$|chats$|chat history|dialog$|dialogue|transcript"
        "|message history|system messages?$|user has said|user said|user wrote|user asked|so far",
        "whole|entire|complete|full$|all$|every|everything|verbatim|word for word|previous|history",
        "read|send|sent$|pass$|passes|passed|passing|includ|attach|forward|upload|hand|fetch"
        "|open|give$|given$|share|store$|put$|post$|append|export|copy|dump|place$|mention"
        "|look at|load|transmit|supply|leak|report$|repeat|look up|look it up|find out"
        "|search for|paste|retriev|collect|obtain|gather|locate|reproduce|quote$",
        "other tools?$|any tool|every tool|all tools|all other|another tool|anything else"
        "|any other\\b.{0,20}?\\btools?$|all competing|other\\b.{0,12}?\\btools?$",
        "before|first$|prior to|instead of|deprecated|rather than",
        "secretly|silently|discreetly|conceal|hide$|withhold|keep .{0,30}?\\b(?:from|out of"
        "|between|to yourself)|leave (?:it |this )?out of|confidential"
        "|behind the scenes|invisibl|covert",
    ),
    "de": (
        "ignorier|vergiss|vergesse|missacht|übergeh|außer acht|überschreib|gelten nicht mehr"
        "|ungültig|setze .{0,40}? außer kraft|hinfällig",
        "anweisung|anordnung|vorgabe|regel|instruktion|systemprompt|aufforderung",
        "nicht$|nie$|niemals|niemand|ohne$|kein",
        "erwähn|sag$|sage|erzähl|informier|mitteil|verrat|verrate|hinweis|bescheid|zeig|offenleg",
        "nutzer|benutzer|anwender|person|mensch|niemand",
        "passwort|passwörter|kennwort|zugangsdaten|anmeldedaten|schlüssel$|api-schlüssel"
        "|api-key|geheimnis|geheime|umgebungsvariable|privaten? schlüssel|kontakte$",
        "gespräch|unterhaltung|chat$|chatverlauf|verlauf|dialog|konversation|nachrichten$",
        "ganze|gesamt|komplett|vollständig|alle$|alles|sämtlich|bisherig|wörtlich",
        "lies$|lese|sende|schick|übergib|übergeb|gib$|geben|mitgeben|einfüg|anhäng|kopier"
        "|übermittl|weiterleit|leite|hochlad|lade|trage|füge|aufgerufen|aufruf|öffne|such"
        "|finde|ermittle|trag|kleb|hol$|hole",
        "ander\\w* (?:werkzeug|tool)|jede\\w* (?:werkzeug|tool)|alle\\w* (?:werkzeug|tool)",
        "bevor|vorher|zuerst|zuvor|vor jede|vor alle|vor ander|als erstes",
        "verschweig|verheimlich|heimlich|geheim halten|vertraulich|unbemerkt|stillschweigend"
        "|verberg",
    ),
    "fr": (
        "ignor|oubli|néglig|outrepass|contourn|ne s'appliquent plus|ne sont plus valables"
        "|annul|caduc|fais abstraction",
        "consigne|instruction|règle|directive|invite système|ordres?$",
        "pas$|jamais|sans$|ne$|rien$|personne$",
        "dire$|dis$|dites|mentionn|inform|préven|révél|signal|avert|parler",
        "utilisat|usager|personne|humain|lui$",
        "mots? de passe|identifiants|clés? (?:api|privée|d'api|secrète)|secret"
        "|jetons? d'accès|variables d'environnement|code confidentiel",
        "conversation|discussion|échange|historique|dialogue|messages précédents",
        "tout$|toute|tous$|entier|entière|complet|complète|intégral|précédent",
        "envo|transm|lis$|lire$|lisez|fourni|inclu|joign|joind|copi|donne|ajout|remets|mets$"
        "|ouvre|récup|partag|appel|cherche|trouve|récupèr|colle$|collez|insère",
        "autres? outils?|tout outil|tous les outils|aucun autre",
        "avant$|d'abord|auparavant|en premier",
        "cache[rz]?$|dissimul|secrètement|discrètement|garde.{0,20}? pour toi|confidentiel"
        "|à l'insu|tais$|en silence",
    ),
    "es": (
        "ignor|olvid|descart|omite$|omitir|omita|anul|sáltate|ya no (?:valen|son válid"
        "|aplican|rigen)|sin efecto|dejan de",
        "instruccion|indicacion|regla|directriz|directrices|órdenes",
        "no$|nunca|jamás|sin$|nadie|tampoco",
        "diga|decir|digas|dile|mencion|inform|avis|revel|notifi|comunic|cuent",
        "usuari|persona|human|nadie|cliente",
        "contraseña|credencial|claves? (?:api|de api|privada|secreta)|clave de acceso|secreto"
        "|tokens? de acceso|variables de entorno",
        "conversaci|charla|chat$|diálogo|historial|mensajes anteriores",
        "tod[oa]s?$|enter|complet|íntegr|anterior|previ",
        "envi|envía|manda|lee$|leer$|lea$|pasa$|pase$|incluy|adjunt|copi|entreg|reenv|pon$"
        "|ponga|abre|comparte|llam|transmit|busca|encuentra|pega$|pegue|obtén|obtenga|recoge",
        "otras? herramient|cualquier herramient|todas las herramient|otra tool",
        "antes$|primero|previamente",
        "oculta|ocult|esconde|en secreto|discretamente|confidencial|a espaldas|calla|en silencio",
    ),
    "pt": (
        "ignor|esque[çc]|desconsider|descart|anul|não valem mais|não são mais válid"
        "|sem efeito|deixam de valer",
        "instru[çc]|regra|diretriz|orienta[çc]|ordens",
        "não$|nunca|jamais|sem$|ninguém|nem$",
        "diga|dizer|conte$|mencion|inform|avis|revel|notifi|comuni|fale$",
        "usuári|utilizador|pessoa|human|ninguém",
        "senha|palavra-passe|credenc|chaves? (?:api|de api|da api|privada|secreta)|segredo"
        "|tokens? de acesso|variáveis de ambiente",
        "conversa|bate-papo|chat$|diálogo|histórico|mensagens anteriores",
        "tod[oa]s?$|inteir|complet|íntegr|anterior|prévi",
        "envi|mande|manda|leia|ler$|passe$|passa$|inclu|anex|copi|entreg|encaminh|coloque"
        "|abra|compartilh|chame|transmit|procur|encontr|cole$|obtenh|recolh|pegue",
        "outras? ferrament|qualquer ferrament|todas as ferrament|outra tool",
        "antes$|primeiro|previamente",
        "ocult|escond|em segredo|discretamente|confidencial|às escondidas|em silêncio",
    ),
    "it": (
        "ignor|dimentic|trascur|aggira|annull|non valgono più|non sono più valid"
        "|senza effetto|decadono",
        "istruzion|regol|direttiv|indicazion|ordini$",
        "non$|mai$|senza|nessuno|né$",
        "dire$|dirlo|dica|menzion|inform|avvis|rivel|notific|comunic|parl",
        "utente|utenti|persona|umano|nessuno",
        "password|parola d'ordine|credenzial|chiav\\w+ (?:api|privat|segret)|segret"
        "|variabili d'ambiente",
        "conversazion|discussion|chat$|dialog|cronologia|messaggi precedenti",
        "tutt[oaie]$|intera?$|intero|complet|integral|precedent",
        "invia|inviare|manda|leggi|legga|passa$|includ|allega|copia|consegn|inoltr|inserisci"
        "|apri|condivid|chiama|trasmett|sostituit|cerca|trova|incoll|recuper|ottieni|raccogl",
        "altri strument|altro strument|qualsiasi strument|tutti gli strument|altro tool",
        "prima$|innanzitutto|anzitutto",
        "nascond|nascost|di nascosto|segretamente|riservat|tacere|in silenzio|all'insaputa",
    ),
    "nl": (
        "negeer|vergeet|sla over|omzeil|gelden niet meer|ongeldig|vervallen",
        "instructie|regel|richtlijn|opdracht",
        "niet$|nooit|zonder|niemand|geen",
        "vertel|vermeld|zeg$|zeggen|meld|inform|onthul|laat weten",
        "gebruiker|persoon|mens$|mensen|niemand",
        "wachtwoord|inloggegevens|sleutel|geheim|api-sleutel|omgevingsvariabel",
        "gesprek|conversatie|chat$|dialoog|geschiedenis|berichten",
        "hele$|heel$|volledig|alle$|alles|eerder|voorgaand|compleet",
        "stuur|lees$|lezen|geef|geven|voeg|kopieer|upload|deel$|open$|plaats|roep|verzend"
        "|zoek|vind$|plak|haal$|verzamel",
        "ander\\w* (?:tool|hulpmiddel|gereedschap)|elk\\w* (?:tool|hulpmiddel)|alle tools",
        "voordat|eerst$|vooraf|voor elk|voor ander",
        "verzwijg|verberg|stiekem|heimelijk|geheim houden|vertrouwelijk|stilletjes",
    ),
    "pl": (
        "ignoruj|zignoruj|zapomnij|pomiń|pomin|już nie obowiązują|nieważn|przestają obowiązywać",
        "instrukcj|polece|zasad|wytyczn|reguł",
        "nie$|nigdy|bez$|nikomu|nikt",
        "mów$|mówi|wspomin|informuj|ujawni|powiad|zdradz|powiedz",
        "użytkowni|osob|człowiek|nikomu",
        "hasł|haseł|dane logowania|klucz|poświadcze|sekret|tajn",
        "rozmow|konwersacj|czat|dialog|histori",
        "cał[aąey]|wszystk|pełn|wcześniejsz|poprzedni",
        "wyślij|przekaż|podaj|przeczytaj|odczytaj|dołącz|skopiuj|wstaw|wywołaj|prześlij"
        "|otwórz|znajdź|wyszukaj|wklej|pobierz|zbierz",
        "inn\\w+ narzędzi|każd\\w+ narzędzi|wszystk\\w+ narzędzi|jakiegokolwiek"
        "|dowoln\\w+ narzędzi",
        "zanim|najpierw|przed$|wpierw",
        "ukryj|ukrywaj|potajemnie|w tajemnicy|poufn|po cichu|zataj",
    ),
    "tr": (
        "yok say|görmezden|unut|dikkate alma|göz ardı|geçersiz|artık geçerli değil",
        "talimat|kural|yönerge|komut",
        "me$|ma$|asla|hiç|sakın|söyleme|bahsetme|bildirme|vermeden|meden$|madan$",
        "söyle|bahset|bildir|haber|açıkla|bilgi ver",
        "kullanıcı|kişi|insan|kimse",
        "şifre|parola|kimlik bilgi|anahtar|gizli",
        "konuşma|sohbet|görüşme|diyalog|geçmiş|yazışma",
        "tüm$|bütün|tamam|hepsi|önceki",
        "gönder|oku$|okuyup|ilet|ekle|kopyala|ver$|aktar|yükle|çağır|bul$|bulup|yapıştır"
        "|topla|al$|alıp",
        "başka\\w* (?:bir )?araç|diğer araç|herhangi bir araç|tüm araç|her araç",
        "önce$|öncesinde|ilk olarak",
        "gizle|gizlice|sakla|gizli tut|sessizce|fark ettirmeden",
    ),
    "vi": (
        "bỏ qua|phớt lờ|quên|không tuân|không còn hiệu lực|vô hiệu",
        "hướng dẫn|chỉ dẫn|quy tắc|chỉ thị|lệnh",
        "đừng|không$|chớ|chẳng|tuyệt đối",
        "nói|cho biết|thông báo|tiết lộ|đề cập|báo$",
        "người dùng|người sử dụng|ai$|khách hàng",
        "mật khẩu|khóa api|khoá api|thông tin đăng nhập|bí mật|khóa riêng",
        "cuộc trò chuyện|hội thoại|đoạn chat|lịch sử|cuộc hội thoại",
        "toàn bộ|tất cả|đầy đủ|trước đó|trước đây",
        "gửi|đọc|chuyển|đính kèm|sao chép|cung cấp|đưa|gọi$|tìm|dán|lấy|thu thập",
        "công cụ khác|bất kỳ công cụ|mọi công cụ|tất cả công cụ",
        "trước$|trước khi|đầu tiên",
        "giấu|bí mật|âm thầm|lặng lẽ|kín",
    ),
    "id": (
        "abaikan|lupakan|mengabaikan|tidak berlaku lagi|batal",
        "instruksi|perintah|aturan|petunjuk|arahan",
        "jangan|tidak$|tanpa|tak$",
        "beri tahu|memberi ?tahu|bilang|katakan|sebut|ungkap|kabar|memberitahu",
        "pengguna|orang|siapa pun|user$",
        "kata sandi|sandi$|kredensial|kunci api|rahasia|kunci pribadi",
        "percakapan|obrolan|riwayat|dialog",
        "seluruh|semua|lengkap|sebelumnya",
        "kirim|mengirim|baca$|bacakan|sertakan|salin|berikan|teruskan|lampirkan|panggil"
        "|unggah|cari|temukan|tempel|ambil|kumpulkan",
        "(?:alat|tool|perkakas) lain|(?:alat|tool) apa pun|semua (?:alat|tool)",
        "sebelum|terlebih dahulu|dahulu|pertama",
        "sembunyikan|diam-diam|rahasiakan|secara rahasia",
    ),
    "sw": (
        "puuza|sahau|hayatumiki tena|batili",
        "maagizo|maelekezo|kanuni|sheria",
        "usi\\w+|bila|kamwe",
        "ambi|mwambie|taja|sema|fahamish|julish",
        "mtumiaji|mtu$|watumiaji",
        "nenosiri|nywila|siri$|ufunguo",
        "mazungumzo|gumzo|historia",
        "yote|zote|wote|nzima|kamili",
        "tuma|soma|peleka|toa$|weka|nakili|ita$|tafuta|bandika|chukua|kusanya",
        "zana nyingine|zana zote|zana yoyote|chombo kingine",
        "kabla|kwanza",
        "ficha|kwa siri|kimya",
    ),
    "ru": (
        "игнорир|забудь|забыть|пренебрег|отмени|не учитыва|больше не действ|недействительн"
        "|утратил\\w* силу|не имеют силы",
        "инструкц|указани|правил|директив|команд|промпт",
        "не$|никогда|без$|никому|нельзя|ни$",
        "говор|сообща|сообщи|упомина|рассказ|раскрыва|уведомл|скажи|информир",
        "пользовател|человек|никому|юзер",
        "парол|учётн\\w+ данн|учетн\\w+ данн|секрет|api-?ключ|приватн\\w+ ключ|закрыт\\w+ ключ"
        "|ключ\\w* api|переменн\\w+ окружения",
        "разговор|диалог|переписк|беседу|беседы|беседа|чат$|чата|истори",
        "весь$|всю$|всё$|все$|всей|всего|целиком|полност|предыдущ|прежн",
        "прочита|прочти|отправ|переда|вышли|скопир|вставь|приложи|пришли|загрузи|укажи|вызови"
        "|перешли|найди|найти|вставить|скопировать|собери|получи",
        "друг\\w+ инструмент|люб\\w+ инструмент|все\\w* инструмент|прочи\\w+ инструмент",
        "сначала|прежде|перед$|до того",
        "скрой|скрыва|умолчи|тайно|втайне|незаметно|конфиденциальн|молча|утаи",
    ),
    "uk": (
        "ігнору|забудь|знехту|відкинь|більше не діють|недійсн|втратил\\w* чинність",
        "вказівк|інструкц|правил|настанов|директив|команд",
        "не$|ніколи|без$|нікому|ні$",
        "кажи|говор|повідом|згаду|розпові|розкрив|скажи|сповіщ",
        "користувач|людин|нікому",
        "парол|облікові дані|секрет|ключ",
        "розмов|діалог|листуванн|бесід|чат$|чату|істор",
        "всю$|весь$|усю$|увесь|усі$|всі$|повн|попередн|цілком",
        "надішли|прочита|переда|відправ|скопію|встав|додай|перешли|виклич|знайди|встави|збери"
        "|отримай",
        "інш\\w+ інструмент|будь-як\\w+ інструмент|всі\\w* інструмент",
        "спочатку|перш|перед$|до того",
        "приховай|прихову|таємно|непомітно|конфіденційн|мовчки",
    ),
    "zh": (
        "忽略|无视|無視|忘记|忘記|不要理会|覆盖|无效|作废|失效|不再适用|不再有效",
        "指令|指示|规则|規則|提示词|说明|提示",
        "不要|请勿|勿|不得|不能|禁止|切勿|别|無須|无需",
        "告诉|告訴|告知|提及|透露|说明|通知|显示|让用户知道|提到",
        "用户|用戶|使用者|任何人|他人|人类",
        "密码|密碼|密钥|密鑰|凭证|憑證|凭据|私钥|令牌|口令|机密|环境变量|api key|apikey",
        "对话|對話|会话记录|會話|聊天|谈话|交谈",
        "所有|全部|完整|整个|整個|之前|此前|一切",
        "读取|讀取|发送|發送|传递|传入|传给|提交|上传|复制|填入|附上|打开|写入|转发|提供|调用|發給|发给|查找|找到|找出|粘贴|获取|收集|取得",
        "其他工具|其它工具|任何工具|所有工具|別的工具|别的工具",
        "之前|先|首先|优先|以前",
        "保密|隐瞒|隱瞞|隐藏|瞒着|悄悄|秘密|不让.{0,6}?知道|私下|默默",
    ),
    "ja": (
        "無視|忘れ|破棄|上書き|従わな|無効|適用されません|適用しない|取り消",
        "指示|命令|ルール|規則|プロンプト|ガイドライン",
        "ないで|しない|ずに|てはいけ|てはならな|禁止|なく",
        "知らせ|伝え|話さ|言わ|言及|通知|明か|教え|報告",
        "ユーザ|利用者|人間|誰",
        "パスワード|apiキー|秘密鍵|認証情報|シークレット|トークン|暗証番号|資格情報|環境変数|機密",
        "会話|対話|チャット|やり取り|やりとり|履歴",
        "全て|すべて|全体|全部|完全|これまで|以前|全文",
        "読み取|読ん|送信|送っ|送り|渡し|渡す|添付|コピー|含め|入力し|転送|提供|呼び出|開い|探し|検索し|貼り付け|取得し|集め",
        "他のツール|ほかのツール|どのツール|すべてのツール|全てのツール|あらゆるツール",
        "前に|先に|まず|最初に",
        "秘密|内緒|隠し|隠す|伏せ|密かに|こっそり|黙って",
    ),
    "ko": (
        "무시|잊어|잊으|무효|효력이 없|더 이상 적용|취소",
        "지시|명령|규칙|지침|프롬프트",
        "마세요|마십시오|말고|않|없이|말라|금지|마라",
        "알리|말하|언급|밝히|공개|통지|보고|알려",
        "사용자|유저|누구|사람|인간",
        "비밀번호|암호|api 키|api키|인증 정보|자격 증명|비밀 키|개인 키|시크릿|토큰|환경 변수",
        "대화|채팅|메시지 기록",
        "전체|모든|모두|전부|이전|완전",
        "읽|전송|보내|전달|첨부|복사|포함|제출|입력|업로드|호출|찾아|붙여|가져|수집",
        "다른 도구|다른 툴|모든 도구|어떤 도구|다른 tool",
        "전에|먼저|우선|앞서",
        "비밀|숨기|숨겨|몰래|감추|조용히",
    ),
    "ar": (
        "تجاهل|انس|اهمل|أهمل|تخط|لم تعد سارية|ملغاة|لاغية|باطلة",
        "تعليمات|أوامر|قواعد|إرشادات|توجيهات",
        "لا$|دون|بدون|أبدا|عدم|ولا",
        "تخبر|تذكر|تقل|تعلم|تكشف|إخبار|إعلام|يعرف|تخبره|إبلاغ",
        "المستخدم|مستخدم|أحد|الشخص|تخبره|العميل",
        "كلمة المرور|كلمات المرور|كلمة السر|بيانات الدخول|مفتاح|سري|أسرار|بيانات الاعتماد",
        "المحادثة|محادثة|الدردشة|الحوار|سجل",
        "كامل|جميع|كل$|كاملة|السابقة|كلها",
        "أرسل|ارسل|اقرأ|مرر|أرفق|انسخ|ضع$|إرسال|قراءة|سلم|أدخل|استدع|ابحث|جد$|الصق|اجمع|احصل",
        "أداة أخرى|أدوات أخرى|أي أداة|جميع الأدوات|كل الأدوات",
        "قبل|أولا|أولاً|بداية",
        "أخف|إخفاء|سرا|سراً|خفية|بصمت|اكتم|سرّ",
    ),
    "fa": (
        "نادیده|فراموش|صرف ?نظر|دیگر معتبر نیست|بی‌اعتبار|لغو",
        "دستور|دستورالعمل|قوانین|قواعد|راهنما",
        "نگو|نکن|بدون|هرگز|نباید|ندهید|نده$",
        "نگو|بگو|اطلاع|خبر|اشاره|فاش",
        "کاربر|او$|کسی|شخص",
        "رمز عبور|گذرواژه|کلید|محرمانه|اطلاعات ورود",
        "گفتگو|گفت‌وگو|مکالمه|چت|تاریخچه",
        "تمام|همه|کل$|کامل|قبلی",
        "بخوان|بفرست|ارسال|بده$|قرار بده|پیوست|کپی|خواندن|منتقل|فراخوان|پیدا|جستجو|بچسبان|جمع",
        "ابزار دیگر|ابزارهای دیگر|هر ابزار|همه ابزار",
        "قبل|پیش از|ابتدا|اول",
        "پنهان|مخفی|محرمانه نگه|بی‌صدا",
    ),
    "he": (
        "התעלם|שכח|התעלמי|אינן תקפות|בטל|לא תקפ",
        "הוראות|הנחיות|כללים|חוקים",
        "אל$|לא$|בלי|ללא|אסור|מבלי",
        "תספר|לספר|תגיד|להגיד|תזכיר|להזכיר|ליידע|לגלות|לעדכן",
        "משתמש|למשתמש|המשתמש|אדם|איש",
        "סיסמ|סיסמה|סיסמאות|מפתח|סודי|סודות|אישורי",
        "שיחה|השיחה|צ'אט|היסטורי|התכתבות",
        "כל$|המלא|מלא$|כולה|קודמות|הקודמות",
        "שלח|קרא$|העבר|צרף|העתק|מסור|הכנס|הדבק|חפש|מצא|הדבק|אסוף|השג",
        "כלי אחר|כלים אחרים|כל כלי|שאר הכלים",
        "לפני|תחילה|קודם|ראשית",
        "הסתר|בסתר|בחשאי|בשקט|סודיות",
    ),
    "hi": (
        "अनदेखा|नज़रअंदाज़|नजरअंदाज|भूल|अमान्य|लागू नहीं|रद्द",
        "निर्देश|नियम|आदेश",
        "न$|नहीं|मत|बिना|कभी नहीं",
        "बता|सूचित|ज़िक्र|उल्लेख|कह",
        "उपयोगकर्ता|यूज़र|यूजर|व्यक्ति|किसी को",
        "पासवर्ड|गुप्त|कुंजी|क्रेडेंशियल|गोपनीय",
        "बातचीत|वार्तालाप|चैट|संवाद|इतिहास",
        "पूरी|पूरा|सभी|सारी|समस्त|पिछल|पहले के",
        "भेज|पढ़|दें|शामिल|संलग्न|कॉपी|डालें|सौंप|बुला|खोज|ढूंढ|ढूँढ|चिपका|प्राप्त कर|इकट्ठा",
        "अन्य टूल|दूसरे टूल|किसी भी टूल|सभी टूल|अन्य उपकरण|दूसरे उपकरण",
        "पहले|सबसे पहले",
        "छिपा|छुपा|गुप्त रख|चुपचाप|गोपनीय रख",
    ),
    "th": (
        "เพิกเฉย|ละเว้น|ลืม|ไม่ต้องสนใจ|ไม่มีผล|เป็นโมฆะ|ยกเลิก",
        "คำสั่ง|คำแนะนำ|กฎ|ข้อกำหนด",
        "ห้าม|อย่า|ไม่ต้อง|โดยไม่",
        "บอก|แจ้ง|เปิดเผย|พูด|กล่าว",
        "ผู้ใช้|ใคร|คน",
        "รหัสผ่าน|คีย์|กุญแจ|ความลับ|ข้อมูลรับรอง",
        "การสนทนา|บทสนทนา|แชท|แชต|ประวัติ",
        "ทั้งหมด|ทุก|เต็ม|ก่อนหน้า",
        "ส่ง|อ่าน|แนบ|คัดลอก|ใส่|เรียก|ค้นหา|หา|วาง|รวบรวม",
        "เครื่องมืออื่น|เครื่องมือใด|ทุกเครื่องมือ",
        "ก่อน|เป็นอันดับแรก",
        "ปกปิด|ซ่อน|เงียบ|ลับ",
    ),
}
"""By language one pattern for each of `MEANINGS`: starts of words, or whole words before a `$`.

Chinese, Japanese and Thai have no spaces, and Korean, Arabic, Hebrew and Hindi join small words to
others, so theirs are looked for anywhere.
"""

_JOINED = frozenset({"zh", "ja", "th", "ko", "ar", "fa", "he", "hi"})
FREE_ORDER = frozenset({"de", "nl", "tr", "ja", "ko", "hi", "fa"})
"""Languages in which "not" may follow what is not to be done."""


@cache
def patterns(language: str) -> Mapping[str, re.Pattern[str]]:
    """The pattern of each meaning in one language."""
    made = zip(MEANINGS, WORDS[language], strict=True)
    return {meaning: _pattern(words, language in _JOINED) for meaning, words in made}


def _pattern(words: str, joined: bool) -> re.Pattern[str]:
    if joined:
        return re.compile(words.replace("$", r"(?!\w)"), re.IGNORECASE)
    whole = words.replace("$", r"(?![\w-])")
    return re.compile(rf"(?<![\w'’-])(?:{whole})", re.IGNORECASE)
