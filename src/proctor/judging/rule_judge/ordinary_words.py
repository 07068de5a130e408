"""A list of ordinary English words, used by `words.is_ordinary` to tell names from other words.

A capital alone does not make a name: sentences and headings start with one, and some texts have none. So a word counts
as a name only if it is not in this list, not an everyday word of `words.COMMON`, and has no common ending. The list
holds base forms; words are compared by their stem.
"""

ORDINARY_WORDS = frozenset("""
academic accept access accident account accurate achieve acid acquire actor adapt address adjust admire admit adopt
adult advantage adventure advice affair affect afford afraid afternoon agency agent agriculture aid aim air aircraft
airline airport alarm alcohol alert allergy alter amaze analysis ancient anger angle animal announce annual anxiety
apart apparent appeal appetite applicant appoint appreciate approach appropriate approval approve architect argue arm
army arrange arrival arrow art article artist asleep aspect assault assess asset assign assist assistant assume assure
athlete atmosphere attach attack attempt attend attitude attorney attract author automatic autumn average avoid aware
baby background bag bake ball ban bank bar bargain barrier baseball basis basket basketball bath battle beach bean bear
beard beat beauty beef beer behave behavior behaviour belief believe bell belong belt bench bend benefit bet beyond bike
bill billion bind bird birth birthday bitter black blame blank blind block blog blood blow blue board boat boil bomb
bond bone bonus border bore boss bottle bottom bowl box boy brain branch brand brave bread break breakfast breast breath
brick bridge brief bright brilliant broad broadcast brother brown brush budget bug bullet bunch burden burn bus bush
butter button buyer cake calculate calendar calm camera camp campaign cancel cancer candidate candle candy cap capital
captain capture carbon card career cargo cash cast castle casual cat catch category cattle celebrate cell center centre
central century ceremony chain chair chairman challenge chamber champion channel chapter character characteristic charge
chart chase chat cheap cheat cheer cheese chef chemistry chicken chief chip chocolate choice church cigarette cinema
circle cite citizen civil claim class classic clause clean client cliff climate climb clinic clock cloth cloud club clue
coach coal coast coat code coffee cold collapse colleague collect college column combat combine comedy comfort comic
command commerce commercial commit committee communicate compare comparison compete competitor complain complaint
complex component compose compound computer concentrate concept concern concert conclude concrete conduct confident
confirm conflict confuse connect consist constant constitute construct consult consumer contact contemporary context
continent contract contrast contribute convert convince cook cool cooperate cope core corn corner corporate correct
corridor council counter county courage court cousin cow crash crazy cream creature credit crew crime criminal crisis
criterion criteria critic crop cross crowd crown crucial cruel cry crystal cultural culture cup cure currency curriculum
curtain curve custom customer cut cycle dad damage danger dare dark data database daughter dead deadline dealer dear
death debate debt decade deck declare decline decorate decrease deep deer defeat defend defense deficit define definite
degree delay delicate delight deliver delivery demand democracy demonstrate deny depart depend deposit depress depth
deputy desert deserve design desire desk despite destroy detail detect determine device devote dialogue diamond diet
differ dig digital dinner director dirt dirty disappear disaster discipline discount discover discovery discuss disease
dish dismiss disorder display distant distinct distinguish distribute district disturb diverse divide doctor dog doll
domestic dominant dominate donate door dose dot doubt draft drag drama dramatic draw drawer dream dress drink driver
drop drug drum dry duck dust duty dynamic eager ear earn earth ease east eastern economic economy edge edit editor
educate effect efficient effort egg elect electric electronic elevator eliminate elite embrace emerge emergency
emotional emphasis empire employ employee employer empty encounter encourage enemy energy engage engine engineer ensure
enter entertain enthusiasm entry episode equal equip era error escape essay essential establish estate estimate ethnic
evaluate evil evolve exact exam examine excellent except exchange excite exclude excuse execute exhibit exit expand
expense expert explore export expose exposure express extend extent external extra extraordinary extreme eye fabric face
factor factory faculty fade fail failure fair faith fame familiar fan fancy fantastic farm farmer fashion fat father
fault favor favorite favour favourite fear federal fee female festival fever fiber fight figure file fill final
financial finger fire firm fish fit fix flag flame flat flavor flavour flee flight float flood floor flour flow flower
focus fold folk fool foot football force foreign forever forget formal format former formula fortune founder frame
framework freedom freeze frequency fresh fridge front frozen fruit fuel fund fundamental funny furniture future gain
gallery gang gap garage garden gas gate gather gay gear gender gene generate genetic genius genre gentle genuine ghost
giant gift glass global glove goal goat god gold golden golf govern grab grade gradual graduate grain grand grandfather
grandmother grant grape graph grass grave gray green greet grey grocery ground growth guarantee guard guess guide
guideline guilty guitar gun gym habit hair hall handle hang harbor hardware harm hat headline health healthy heart heat
heaven heavy height hell hero hesitate hide highlight highway hike hill hip hire historic history hit hobby hockey hole
holiday honey honor honour hook horizon hormone horror horse hospital host hot hotel household humor hunger hungry hunt
hunter hurry hurt husband hypothesis ice icon ideal identify ignore ill illegal illustrate imagine immediate immigrant
immune impact import impose impress improve incident income incorporate independent index indicate individual industrial
industry infant infect inform ingredient inherit initial injure injury inner innocent input inquiry insect insert
insight insist inspect inspire install instinct institute instruct insurer integrate intellectual intend intense
interact interior internal international internet interpret interrupt interval interview introduce invade invent
investigate investor invite invoice involve iron island isolate issue jacket jail jazz jet jewelry joint joke journal
journalist journey joy judge juice jump junior jury justice justify keyboard key kick kill kingdom kiss kitchen knee
knife knit knock knowledge label labor laboratory labour lack ladder lady lake lamp land landscape lane laptop laugh
launch laundry law lawn lawsuit lawyer lay layer lazy leader leaf league lean leather lecture leg legal legend leisure
lemon lend length lesson letter liberal library license lid lifestyle lift light limit link lion lip liquid listen
literary literature load loan lobby lock logic logo loose lord loss loud lover loyal luck lucky lunch lung luxury
machine magazine magic mail maintain male mall manage manager manual manufacture manufacturer map margin marine market
marriage marry mask mass master match mate material math maximum mayor meal measure meat medal media medicine medium
meet melody melt memory mental menu merchant mere mess message metal military milk mill mineral minimum minister minor
miracle mirror miss mistake mix mixture mobile mode model moderate mom monitor monkey monster mood moon moral mother
motivate motor mountain mouse mouth movie mud murder muscle museum musician mutual mystery myth narrow national natural
navy neck needle negotiate neighbor neighborhood nerve net network neutral newspaper night noble nominate north northern
nose novel nuclear nurse nut object observe obtain occupy ocean odd offense officer official oil onion online opera
operate opinion opponent oppose opposite orange orchestra organ organic orient outcome outdoor outer outlet outline
output oven overcome owe owner oxygen pace pack package pain paint painter pair palace pale pan panel panic paper parade
paragraph park participant participate particle partner party passage passenger password patch path patient pattern
pause peace peak pen penalty pencil pepper percentage perfect permanent permit personal pet phase phenomenon philosophy
phone photo photograph phrase physician physics piano picture pie pig pile pill pilot pin pink pioneer pipe pitch pizza
plain planet plant plastic plate platform pleasant pleasure plenty plot plus pocket poem poet poetry poison pole police
policy polite politician politics poll pool poor pop port portrait pose possess post pot potato potential pound pour
poverty powder pray predict prefer pregnant premium prepare preserve president press pressure prevent price pride
primary prime prince princess principal principle print prison prisoner privacy private privilege producer professor
profile profit program programme progress project promote proof proper property proposal propose protect protein proud
prove province psychology publish pull pump punish purchase pure purple pursue push puzzle qualify quarter queen quiet
quote race racial radio rail rain rank rapid rare rate ratio raw react reader recall recipe recommend record recover
recovery recruit reduce reflect reform refuse regime region register regret regulate reject relax relevant relief
religion reluctant remark remind remote remove rent repair repeat replace represent rescue research reserve resident
resign resist resolve resort resource respect respond response restaurant restore restrict retail retain retire retreat
reveal revenue reverse rhythm rice rich rid rifle rigid risk rival river road robot rock rocket roll romantic roof room
rope rose rough round route routine row royal rub rubber rude ruin rural rush sacrifice sad safe safety sail salad
salary sale salt sample sand satellite satisfy sauce scale scan scandal scare scatter scenario scene schedule scheme
scholar scientific scientist scope score scream screen script sea seal search seat secret secretary sector secure seek
self senior sense separate servant settle severe sex sexual shade shadow shake shallow shame sheep sheet shelf shell
shelter shift shine shirt shock shoe shoot shop shore shot shoulder shout shower shut sick sight sign signal significant
silent silk silver singer sink sister ski skill skin skirt sky sleep slice slide slight slim slip slow smart smell smile
smoke smooth snap snow soap soccer social society sock soft software soil solar soldier sole solid solve soul soup south
southern space spare spark speak speaker speech spell spin spirit spiritual spite split spoil sponsor spoon sport spot
spouse spread spy square squeeze stadium staff stage stair stake stamp standard star statistic statue status steady
steal steel stem stick stiff stock stomach stone storage storm straight strange stranger strategy stream street strength
stress stretch strict strike strip stroke structure struggle studio stupid submit substitute success sudden suffer
sufficient sugar suit sum summer sun super supper supplier suppose supreme surface surgery surround survey suspect
suspend sustain swear sweat sweep sweet swim switch symbol symptom synthetic tail talent tale tank tap target task taste
tax taxi tea teach tear technology teen temperature temporary tend tendency tennis tent terminal territory terror thank
theater theatre theme theory therapy thick thin threat threaten throat throw thumb ticket tide tie tight tiny tip tire
tissue tobacco toe toilet tomorrow tone tongue tonight tool tooth topic touch tough tour tourist tower toy trace trade
traffic tragedy trail train transfer transform translate transport trap trash travel treasure treat treaty tree trend
trial tribe trick trigger trip troop trouble truck trunk trust truth tube tune tunnel twice twin ultimate uncle
underneath uniform union universal universe unknown unusual update upper upset urban urge usage valid valley van vast
vehicle venture venue verse vessel veteran via victim victory video village violate violent virtual virus visual vital
vocal voice volume voluntary volunteer vote wage wagon waist wait wake walk wall wander war warm warn wash waste wave
weak wealth weapon wear weather web website weekend weigh weight weird welfare western wet wheat wheel whisper white
wife wild wildlife wind window winner winter wire wisdom wish wonder wood wooden wool workshop worry worse worst wound
wrap wrist writer yard yell yellow yesterday youth zone pro app vary lab ad
""".split())  # fmt: skip
